// The rewrite stage: its passes, and the order in which they run.  A pass is one function from
// Graph to Graph; to add one, write its file and its test, declare it below with the identity that
// it uses and its side condition, and give it a row.
#pragma once

#include "config/settings.h"
#include "cost/device_spec.h"
#include "ir/builder.h"

namespace stitch {

// The passes that ask for no target; `keeps_deviations`: all but expand_deviations.
Graph rewrite_graph(const Graph& graph, bool keeps_deviations = false);

// All of it for one target: the passes above, and those that ask what the device or the settings
// want, in their order.
struct Rewritten {
  Graph graph;
  std::vector<Cut> cuts = {};  // the attention that stays written out, and why
};
Rewritten rewrite_for_target(const Graph& graph, const Settings& settings, const Target& target);

//   add(mm(a, b), c)   becomes   addmm(c, a, b),   and of bmm baddbmm, sums of sums too,
// where c is a product as well, or what a kernel has stored for what led to the product, nobody
// reads either afterwards, and calls or the caller read the sum.  The call stores over c
// (CallStep): it reads and writes as much as c, where a kernel that adds would read twice and write
// that, beside the product that it needs stored.  A c that lives on would be copied first, which
// gains nothing; what a kernel adds on its way to something else stays.
//
// The product is not rounded before c is added; `rounds_products`: it is to be, in 16 bits.
Graph add_in_products(const Graph& graph, bool rounds_products);

// Expands sum_sq_dev(x) into its two passes, in the dtype of the result:
//   mean = sum(x) / n;  d = x - mean;  sum(d * d) - sum(d) * sum(d) / n
// Two passes lose no digits to cancellation, unlike sum(x*x) - n*mean*mean.  The last term is what
// the mean, which is rounded, is off by: sum(d) is next to zero, but counts where means are large.
// In f64 of what a narrower type held, d is taken from the first element instead: one pass.
Graph expand_deviations(const Graph& graph);

// The same in parts: the second pass over x along some axes, which the results lack, ...
struct Deviations {
  NodeId center, squares, sum;  // deviations are from the center
};
// `count`: of elements that each sum is over; where `inside` is false there is none.
Deviations sum_deviations(Builder& b, NodeId x, const std::vector<int64_t>& axes, NodeId count,
                          NodeId inside = {});
// ... and the correction, which holds whatever number near the mean deviations are taken from.
NodeId center_squares(Builder& b, NodeId squares, NodeId sum, NodeId count);
// Elements of x along the axes, as a number of its dtype.
NodeId count_elements(Builder& b, NodeId x, const std::vector<int64_t>& axes);

// Computes what is constant, and drops operations that change no bit: x*1, x-0, neg(neg(x)), casts
// that lose nothing.  Only what eager computes exactly the same, NaN, infinities and signed zeros
// included; x+0 stays because of -0.
Graph fold_constants(const Graph& graph);

// 1 + tanh(x) becomes 2 * sigmoid(2 * x), which cancels nowhere and takes fewer of a GPU's
// instructions, and (x / 2) * (2 * y) becomes x * y: GELU by tanh is x * sigmoid(2 * inner).
Graph form_sigmoids(const Graph& graph);

// Convolutions read and write channels last where the host's library is faster so, and as exact.
// conv(x) = first(conv(last(x))), where `last` moves channels behind places and `first` back; by
// one place it is a product.  What lies between is computed so too.  Where the graph returns
// operand or result, as training does, nothing changes.  `layout`: setting `convolution_layout`.
Graph lay_channels_last(const Graph& graph, const std::string& layout);

// A put becomes what the target does fastest:
//  * one row: a slice whose start is read from memory; so is one place for each row across;
//  * segments: each row combines its own part of the source, after one call has sorted the
//    positions by row.  Sums have the order of the source, the last of several writes wins;
//  * chunks, on CPUs, where the rows are few beside the positions: chunks of positions combine into
//    rows of their own, and these in the order of the chunks (privatisation, as for histograms);
//  * the call that eager makes, where that is cheaper.
// The results of none depend on threads.  No put is left in the graph that comes out.
Graph lower_scatters(const Graph& graph, bool on_host);

// Composes views of views and drops views that change nothing.  A permutation that only moves
// extents of 1, or an expand that only adds them, becomes a reshape, so that more of them meet.
// Views of a constant are the constant, expanded.
Graph merge_views(const Graph& graph);

// A matrix operand that is copied anyway is copied in the order its source is contiguous.
// reshape(x) with x's last two dimensions kept and the last but one contiguous (a transposed key
// whose batch and head dimensions do not merge) becomes the transpose of a reshape of x transposed:
// the copy is then contiguous on both sides, and BLAS takes the transposed strides.
Graph order_blas_copies(const Graph& graph);

// What reads a tensor after parts of it were replaced reads the parts, or what stands beside them:
//   slice(slice_scatter(x, src, [0, 2)), [0, 2))             becomes   src
//   slice(slice_scatter(x, src, [0, 2)), [4, 6))             becomes   slice(x, [4, 6))
//   slice_scatter(slice_scatter(x, a, [0, 2)), b, [0, 2))    becomes   slice_scatter(x, b, [0, 2))
// and what goes into a view without its dimensions of extent 1, and back, is put where it belongs
// (x[0, 1:3] = src, which torch writes as a slice_scatter of a selected row):
//   reshape(slice_scatter(reshape(y), src))         becomes   slice_scatter(y, reshape(src))
// Reads of what an input becomes, or of a result, stay: they are in memory.
Graph read_past_writes(const Graph& graph);

// Drops copies that nobody can tell from their source: layouts whose strides no one outside sees,
// slices of everything, slices put back, cat of one part, a part sliced out of a cat again, pad by
// nothing.  Memory a caller may write is never shared anew (rewrite/rebuild_graph.h).
Graph remove_copies(const Graph& graph);

// Drops nodes that nothing outside can see: no output, mutation or call with effects reads them.
// Inputs, the signature, stay.  Unused `aten` calls go unless ops/library_calls.h keeps them.
Graph remove_dead(const Graph& graph);

// Reductions that need no loop: over extents of 1, of constants, of one place (in 32 bits).
Graph simplify_algebra(const Graph& graph);

// Moves widening casts past views and readers, towards their consumers: view(cast(x)) becomes
// cast(view(x)).  What is read, gathered or materialised is then the narrow value.  Casts that may
// round are never moved.
Graph sink_casts(const Graph& graph);

// Reductions too large for one block are cut at their partials: a reduction over an axis becomes
// one over its pieces and one over the pieces' results, both ordinary nodes (DESIGN.md 3).  Those
// of one tensor whose axes together leave too few blocks are split along the same axis, so that all
// partial results come from one pass.  So are those that look again at more than a block holds, in
// pieces of blocks or of threads (rewrite/reductions/reduce_pieces.h).
Graph split_reductions(const Graph& graph, const DeviceSpec& device, int worker_threads,
                       bool emulate_eager_casts = false);

// A part of an input that is replaced where the input is:
//   mutate x <- slice_scatter(x, src)   becomes   mutate x <- write_slice(x, src),
// which stores the elements of src alone.  Slices of slices (x[a:b, i] = src) are one write; parts
// that do not meet, one after the other (keys and values of one cache), are
//   mutate x <- join(write_slice(x, a), write_slice(x, b)).
//
// Side condition: nobody else reads x, but for the elements that src replaces (x[i] += ..), so that
// no read of the old contents can come too late; and neither x nor the new value is returned.
//
// Parts of a value that only outputs and library calls read, some of them reductions or made from
// such, are written where they belong, each by a mapping of its own:
//   cat(a, softmax(b))   becomes   join(write_slice(m, a), write_slice(m, softmax(b))),
// where m stands for the memory of the result and is never evaluated.  Evaluated at the indices of
// the cat, a reduction's operand would be read again.
Graph write_in_place(const Graph& graph);
// The last of all: other passes would take the layout of m for a copy that nobody needs.
Graph write_joined_parts(const Graph& graph);

}  // namespace stitch
