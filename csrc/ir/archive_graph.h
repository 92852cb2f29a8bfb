// What base/archive.h has to know to keep ids, sizes and what holds them: graphs, programs.
#pragma once

#include <algorithm>

#include "base/archive.h"
#include "ir/graph.h"

namespace stitch {

template <class Tag>
void pass_parts(Archive& archive, Id<Tag>& id) {
  int32_t value = id.value();
  archive.pass(value);
  id = Id<Tag>(value);
}

inline void pass_parts(Archive& archive, Dim& dim) {
  using Term = Dim::Terms::value_type;
  std::vector<Dim::Monomial> products = map_to_vector(dim.terms(), &Term::first);
  std::vector<int64_t> factors = map_to_vector(dim.terms(), &Term::second);
  archive.pass(products);
  archive.pass(factors);
  if (!archive.reads()) return;
  dim = 0;
  for (size_t i = 0; i < std::min(products.size(), factors.size()); ++i)
    dim = dim + Dim::product(products[i], factors[i]);
}

}  // namespace stitch
