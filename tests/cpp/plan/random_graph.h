// Graph text of pseudo-random ops, for claims about every graph.
#pragma once

#include <cstdint>
#include <sstream>
#include <string>
#include <vector>

namespace stitch {

// Ops on [64,32] and [64,1], reductions and broadcasts between them; library calls if wanted.
inline std::string random_graph(uint32_t seed, int ops, bool has_calls) {
  std::ostringstream text;
  std::vector<std::string> full, row;
  auto draw = [&](size_t below) {
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 16) % below;
  };
  auto any = [&](const std::vector<std::string>& of) { return of[draw(of.size())]; };
  for (const char* name : {"%f0", "%f1"}) text << name << " = input : f32[64,32]\n";
  text << "%r0 = input : f32[64,1]\n";
  full = {"%f0", "%f1"};
  row = {"%r0"};
  for (int i = 0; i < ops; ++i) {
    const std::string name = "%n" + std::to_string(i);
    const size_t kind = draw(has_calls ? 8 : 7);
    text << name << " = ";
    if (kind == 0) text << "sum(" << any(full) << "){axes=[1], keepdim}\n";
    if (kind == 1) text << "exp(" << any(row) << ")\n";
    if (kind == 2) text << "mul(" << any(row) << ", " << any(row) << ")\n";
    if (kind == 3) text << "flip(" << any(full) << "){axes=[0]}\n";
    if (kind == 4 || kind == 5) text << "add(" << any(full) << ", " << any(full) << ")\n";
    if (kind == 6) text << "mul(" << any(full) << ", " << any(row) << ")\n";
    if (kind == 7) text << "library(" << any(full) << "){name=\"aten.mm.default\"} : f32[64,32]\n";
    (kind < 3 ? row : full).push_back(name);
  }
  text << "outputs (" << any(full) << ", " << any(row) << ", " << full.back() << ")\n";
  return text.str();
}

}  // namespace stitch
