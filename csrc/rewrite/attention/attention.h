// Attention that is written out: two batched products, and between them scores that are scaled,
// masked and made probabilities by a softmax.
#pragma once

#include "config/settings.h"
#include "cost/device_spec.h"
#include "ir/graph.h"

namespace stitch {

// One step that hides scores.
struct MaskTerm {
  enum class Kind { kAdd, kSubtract, kFillWhere, kFillUnless } kind;
  NodeId value;  // added or subtracted; the condition of a fill; it broadcasts over the scores
  double fill = 0;

  bool fills() const { return kind == Kind::kFillWhere || kind == Kind::kFillUnless; }
};

struct Attention {
  NodeId scores, result;  // the two products
  // What they multiply, before views that only regroup the batch: [.., rows, width] and, of key and
  // value, [.., columns, width].
  NodeId query, key, value;
  bool key_is_flipped = false;  // it is [.., width, columns]
  double scale = 1;
  std::vector<MaskTerm> mask;  // in the order in which the scores meet them
  int masked_rank = 0;         // of the scores that masks broadcast over
  DimList batch;               // two dimensions: those of the masks, else of the query
  Verdict verdict;             // no: a library call would give other numbers, or has no such form
};

// All candidates, the refused ones too, in the order of their results.
std::vector<Attention> find_attention(const Graph& graph);
// The same, with the verdicts of settings and the cost model on what becomes a library call.
std::vector<Attention> choose_attention(const Graph& graph, const Settings& settings,
                                        const DeviceSpec& device);

// Attention becomes one library call.
//
// It yields what the two products do, but for scores that are infinite or NaN where a mask hides
// them.  A row that is hidden altogether is NaN, as from a softmax, where the library's call would
// make it 0: marked in the product that reads the result, or else by NaN in the mask.
//
// On a GPU the call names the kernel that torch's selection takes, as tracing does with a call that
// a user wrote: a plan then says what runs.  Where sizes do not show that the kernel takes them,
// and on CPUs, torch selects when it is called.
//
// `judged`: of this graph; the refused ones stay written out.
Graph call_attention(const Graph& graph, const std::vector<Attention>& judged, bool on_gpu);

// The refused ones, found in `before`, as cuts of the graph that rewrites made of it.
std::vector<Cut> find_cuts(const std::vector<Attention>& judged, const Graph& before,
                           const Graph& after);

}  // namespace stitch
