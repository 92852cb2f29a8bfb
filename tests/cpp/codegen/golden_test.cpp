#include "support/golden.h"

#include "compile.h"
#include "support/golden_graphs.h"
#include "support/read_graph.h"

namespace stitch {
namespace {

constexpr int kWorkers = 4;  // of the host target

class Golden : public testing::TestWithParam<std::tuple<GoldenGraph, const char*>> {
 protected:
  std::string stage(const std::string& name) const {
    const auto& [graph, target] = GetParam();
    CompileRequest request{read_graph(graph.text), Settings{}, target, false, kWorkers};
    if (request.target != "cpu") request.graph.symbols.nearness = SymbolTable::Nearness::kClass;
    return show_stage(request, name);
  }
  std::string file(const std::string& folder) const {
    const auto& [graph, target] = GetParam();
    return folder + "/" + graph.name + "." + target + ".txt";
  }
};

// The plan names nodes of the rewritten graph, so the file shows both.
TEST_P(Golden, Plan) { expect_golden(file("plan"), stage("rewrite") + "\n" + stage("plan")); }

TEST_P(Golden, Schedule) { expect_golden(file("schedule"), stage("schedule")); }

TEST_P(Golden, Text) { expect_golden(file("text"), stage("emit")); }

// Names carry a hash of the text: two compilations of one graph must agree to the last byte.
TEST_P(Golden, TextIsTheSameEveryTime) { EXPECT_EQ(stage("emit"), stage("emit")); }

INSTANTIATE_TEST_SUITE_P(Patterns, Golden,
                         testing::Combine(testing::ValuesIn(golden_graphs()),
                                          testing::Values("cpu", "h200")),
                         [](const auto& instance) {
                           return std::string(std::get<0>(instance.param).name) + "_" +
                                  std::get<1>(instance.param);
                         });

}  // namespace
}  // namespace stitch
