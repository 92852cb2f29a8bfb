// What base/archive.h has to know to keep ids, sizes and what holds them: graphs, programs.
#pragma once

#include "base/archive.h"
#include "ir/graph.h"

namespace stitch {

template <class Tag>
void pass_parts(Archive& archive, Id<Tag>& id) {
  int32_t value = id.value();
  archive.pass(value);
  id = Id<Tag>(value);
}

void pass_parts(Archive& archive, Dim& dim);

}  // namespace stitch
