// What eager makes of operands: no list of what its kernels take, and of where their results lie,
// could follow torch.  It is given small ones of the same types that lie as the real ones do: of
// [64, 32, 128] with strides [32, 1, 2048], ones of [2, 2, 2] with strides [2, 1, 4].
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/full.h>
#include <omp.h>
#include <torch/csrc/jit/python/pybind_utils.h>

#include <ranges>

#include "bindings/python_types.h"

namespace stitch {
namespace {

using at::Tensor;
using Dimensions = std::vector<int64_t>;

constexpr int64_t kMostDims = 16;  // of 65,536 elements

struct SmallLayout {
  Dimensions sizes, strides;
};
// Of each result, empty where it is not known; nothing where eager refuses.
using Answer = std::optional<std::vector<SmallLayout>>;

// The number that tracing was shown.
int64_t seen(const c10::SymInt& number, int64_t unknown) {
  if (const auto known = number.maybe_as_int()) return *known;
  const py::object hint = py::getattr(py::cast(number).attr("node"), "hint", py::none());
  return PyLong_Check(hint.ptr()) ? hint.cast<int64_t>() : unknown;
}

// Two along each dimension, or one as in `x`; in the same order in memory, repeated too.
SmallLayout shrink(const Tensor& x) {
  SmallLayout small{Dimensions(x.dim(), 2), Dimensions(x.dim())};
  Dimensions order = count_to<int64_t>(x.dim()), strides;
  for (const int64_t d : order) {
    if (seen(x.sym_size(d), 2) == 1) small.sizes[d] = 1;
    strides.push_back(seen(x.sym_stride(d), INT64_MAX));
  }
  std::ranges::stable_sort(order, std::greater(), [&](int64_t d) { return strides[d]; });
  int64_t stride = 1;
  for (const int64_t d : order | std::views::reverse) {
    const bool repeats = small.sizes[d] > 1 && strides[d] == 0;
    small.strides[d] = repeats ? 0 : stride;
    stride *= repeats ? 1 : small.sizes[d];
  }
  return small;
}

// In place of an argument: ones, and numbers of which sizes can be made.  On a GPU, where nothing
// runs after an index out of range, integers are zeros.  Throws where `item` is on another device.
py::object stand_in(bool on_host, py::handle item, std::optional<at::ScalarType> dtype,
                    bool& is_number_smaller) {
  if (THPVariable_Check(item.ptr())) {
    const Tensor& x = THPVariable_Unpack(item.ptr());
    const bool on_gpu = x.key_set().has_backend(c10::BackendComponent::CUDABit);
    if (on_gpu == on_host || x.dim() > kMostDims) throw UnsupportedError("no kernel is asked here");
    const auto options = at::device(on_gpu ? at::kCUDA : at::kCPU);
    const at::ScalarType type = dtype.value_or(x.scalar_type());
    const bool may_index = on_gpu && at::isIntegralType(type, /*includeBool=*/false);
    const SmallLayout small = shrink(x);
    const Tensor whole = at::full(1LL << x.dim(), may_index ? 0 : 1, options.dtype(type));
    return py::cast(whole.as_strided(small.sizes, small.strides));
  }
  if (torch::is_symfloat(item)) return py::float_(0.5);
  if (torch::is_symint(item)) return py::int_(2);
  if (!PyLong_CheckExact(item.ptr()) || item <= py::int_(2)) return {};
  is_number_smaller = true;
  return py::int_(2);
}

Answer ask_eager(bool on_host, py::handle target, const py::tuple& args, const py::dict& kwargs) {
  const std::string name = py::str(target);
  const bool is_asked = name.starts_with("aten.") && !name.starts_with("aten._assert_");
  const auto op = is_asked ? find_operator(name) : std::nullopt;
  if (!op || op->hasTag(at::Tag::nondeterministic_seeded)) return Answer(std::in_place);
  const at::AutoDispatchBelowADInplaceOrView no_autograd;
  const c10::impl::ExcludeDispatchKeyGuard no_modes(
      c10::python_ks.add(c10::DispatchKey::Functionalize));
  const int threads = omp_get_max_threads();  // of this thread: at's are of the process
  omp_set_num_threads(1);                     // others may be slow to meet
  const std::shared_ptr<void> restored(nullptr, [&](void*) { omp_set_num_threads(threads); });
  for (const auto dtype : {std::optional<at::ScalarType>(), std::optional(at::kFloat)}) {
    bool is_smaller = false;
    const auto replace = [&](auto item) { return stand_in(on_host, item, dtype, is_smaller); };
    try {
      torch::jit::Stack stack = torch::jit::createStackForSchema(
          op->schema(), torch::jit::tuple_slice(py::tuple(map_nested(args, replace))),
          py::kwargs(map_nested(kwargs, replace)), std::nullopt);
      op->callBoxed(&stack);
      if (dtype) return std::nullopt;
      if (is_smaller && !op->hasTag(at::Tag::pointwise)) break;  // it may have been a dimension
      std::vector<SmallLayout> results(stack.size());
      for (size_t i = 0; i < stack.size(); ++i) {
        const Tensor x = stack[i].isTensor() ? stack[i].toTensor() : Tensor();
        if (x.defined() && x.is_non_overlapping_and_dense())
          results[i] = {x.sizes().vec(), x.strides().vec()};
      }
      return results;
    } catch (const c10::NotImplementedError&) {
      return std::nullopt;
    } catch (const std::exception&) {  // of floats as well: it says nothing about dtypes
    }
  }
  return Answer(std::in_place);
}

// In the order of `eager`, where it lies otherwise, or in its own where sizes may decide.
py::object lay(const Tensor& x, const SmallLayout& eager, const std::vector<Tensor>& operands) {
  const SmallLayout small = shrink(x);
  bool is_other = false, is_known = eager.sizes == small.sizes;
  for (int64_t d = 0; is_known && d < x.dim(); ++d)
    is_other |= small.sizes[d] > 1 && small.strides[d] != eager.strides[d];
  for (const Tensor& y : operands) {
    for (int64_t d = 1; is_other && is_known && y.dim() > 1 && d <= y.dim(); ++d) {
      const int64_t size = seen(y.sym_size(-d), 2);
      is_known = d <= x.dim() && (size == 1 || size == seen(x.sym_size(-d), 2));
    }
  }
  if (!is_other || !is_known) return py::cast(x);
  const Dimensions dims = count_to<int64_t>(x.dim());
  Dimensions order = dims;
  std::ranges::stable_sort(order, std::greater(), [&](int64_t d) {
    return small.sizes[d] == 1 ? INT64_MAX : eager.strides[d];
  });
  return py::cast(x.permute(order).contiguous().movedim(dims, order));
}

}  // namespace

bool eager_refuses(bool on_host, py::handle op, const py::tuple& args, const py::dict& kwargs) {
  return !ask_eager(on_host, op, args, kwargs);
}

py::object decompose(bool on_host, const py::object& op, const py::object& form,
                     const py::args& args, const py::kwargs& kwargs) {
  static thread_local const PyObject* traced = nullptr;  // stays, and is called within this call
  const auto as_it_is = py::reinterpret_borrow<py::object>(Py_NotImplemented);
  const bool stays = form.is_none();
  if (stays && std::exchange(traced, nullptr) == op.ptr()) return as_it_is;
  std::vector<Tensor> operands;
  for (const py::handle item : args)
    if (THPVariable_Check(item.ptr())) operands.push_back(THPVariable_Unpack(item.ptr()));
  const auto is_in_order = [](const Tensor& x) {
    return std::ranges::is_sorted(shrink(x).strides, std::greater());
  };
  if (stays && std::ranges::all_of(operands, is_in_order)) return as_it_is;  // so is the result
  const Answer eager = ask_eager(on_host, op, args, kwargs);
  if (!eager || (stays && eager->empty())) return as_it_is;
  traced = stays ? op.ptr() : nullptr;
  py::object made = (stays ? op : form)(*args, **kwargs);
  if (PyTuple_Check(made.ptr())) made = py::tuple(py::list(made));  // its parts may have names
  size_t position = 0;
  return map_nested(made, [&](py::handle item) -> py::object {
    if (PyList_Check(item.ptr()) || PyTuple_Check(item.ptr())) return {};
    const size_t at = position++;
    if (at >= eager->size() || !THPVariable_Check(item.ptr())) return {};
    return lay(THPVariable_Unpack(item.ptr()), eager->at(at), operands);
  });
}

py::list elementwise_ops() {
  py::list names;
  for (const auto& [name, overload] : c10::Dispatcher::singleton().getAllOpNames()) {
    const auto op = c10::Dispatcher::singleton().findSchema({name, overload});
    const bool is_one = op && name.starts_with("aten::") && op->hasTag(at::Tag::pointwise);
    if (is_one && !op->schema().is_mutable())
      names.append(name.substr(6) + "." + (overload.empty() ? "default" : overload));
  }
  return names;
}

}  // namespace stitch
