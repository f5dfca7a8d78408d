#include "matmul.hpp"

#include <algorithm>
#include <cstdint>
#include <dnnl.hpp>
#include <map>
#include <mutex>
#include <stdexcept>

#include "parallel.hpp"

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define TRAIN_GPT_RACE_DETECTOR
#endif
#elif defined(__SANITIZE_THREAD__)
#define TRAIN_GPT_RACE_DETECTOR
#endif
#ifdef TRAIN_GPT_RACE_DETECTOR
/// oneDNN and its thread pool are not built for the race detector, which so misses how their threads wait for each
/// other: what they copy and clear is left out.
extern "C" const char* __tsan_default_suppressions() { return "called_from_lib:libdnnl.so\n"; }
#endif

namespace train_gpt {
namespace {

dnnl::memory::desc describe(const layout& l, std::size_t batch) {
  const auto n = [](std::size_t value) { return static_cast<dnnl::memory::dim>(value); };
  if (batch == 1) {
    return {{n(l.rows), n(l.columns)}, dnnl::memory::data_type::f32, {n(l.row_stride), n(l.column_stride)}};
  }
  return {{n(batch), n(l.rows), n(l.columns)},
          dnnl::memory::data_type::f32,
          {n(l.batch_stride), n(l.row_stride), n(l.column_stride)}};
}

/// A product made ready to run: oneDNN generates code for a shape once.
struct ready_product {
  ready_product(const product& p, const dnnl::engine& cpu)
      : description(dnnl::matmul::desc(describe(p.a, p.batch), describe(p.b, p.batch), describe(p.c, p.batch)),
                    attributes(p), cpu),
        primitive(description) {}

  static dnnl::primitive_attr attributes(const product& p) {
    dnnl::primitive_attr attr;
    attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    if (p.accumulate) {
      dnnl::post_ops add;
      add.append_sum(1.0F);
      attr.set_post_ops(add);
    }
    return attr;
  }

  [[nodiscard]] std::size_t scratch_bytes() const { return description.scratchpad_desc().get_size(); }

  dnnl::matmul::primitive_desc description;
  dnnl::matmul primitive;
};

}  // namespace

template <>
struct matmul<float>::impl {
  const ready_product& find(const product& p) {
    const std::scoped_lock lock(mutex);
    auto found = cache.find(p);
    if (found == cache.end()) {
      prepare_compute_thread();  // the generated code is for a number of threads
      found = cache.try_emplace(p, p, cpu).first;
    }
    return found->second;  // nodes of a map stay where they are
  }

  dnnl::engine cpu{dnnl::engine::kind::cpu, 0};
  std::mutex mutex;
  std::map<product, ready_product> cache;
};

template <>
struct matmul<double>::impl {};

template <typename T>
matmul<T>::matmul() : impl_(std::make_unique<impl>()) {}
template <typename T>
matmul<T>::~matmul() = default;

template <>
std::size_t matmul<float>::scratch_bytes(std::initializer_list<product> products) {
  std::size_t most = 0;
  for (const product& p : products) {
    most = std::max(most, impl_->find(p).scratch_bytes());
  }
  return most;
}

template <>
void matmul<float>::operator()(const product& p, const float* a, const float* b, float* c,
                               std::span<std::byte> scratch) {
  const ready_product& ready = impl_->find(p);
  if (scratch.size() < ready.scratch_bytes()) {
    throw std::logic_error("a matrix product needs more scratch than it was given");
  }
  // oneDNN takes pointers to mutable memory for its inputs too; it does not write them.
  const dnnl::memory from_a(ready.description.src_desc(), impl_->cpu, const_cast<float*>(a));
  const dnnl::memory from_b(ready.description.weights_desc(), impl_->cpu, const_cast<float*>(b));
  const dnnl::memory to(ready.description.dst_desc(), impl_->cpu, c);
  const dnnl::memory pad(ready.description.scratchpad_desc(), impl_->cpu, scratch.data());
  dnnl::stream stream(impl_->cpu);
  ready.primitive.execute(
      stream, {{DNNL_ARG_SRC, from_a}, {DNNL_ARG_WEIGHTS, from_b}, {DNNL_ARG_DST, to}, {DNNL_ARG_SCRATCHPAD, pad}});
  stream.wait();
}

template <>
std::size_t matmul<double>::scratch_bytes(std::initializer_list<product> /*products*/) {
  return 0;
}

template <>
void matmul<double>::operator()(const product& p, const double* a, const double* b, double* c,
                                std::span<std::byte> /*scratch*/) {
  for (std::size_t n = 0; n < p.batch; ++n) {
    const double* from_a = a + n * p.a.batch_stride;
    const double* from_b = b + n * p.b.batch_stride;
    for (std::size_t i = 0; i < p.c.rows; ++i) {
      for (std::size_t j = 0; j < p.c.columns; ++j) {
        double sum = 0.0;
        for (std::size_t k = 0; k < p.a.columns; ++k) {
          sum +=
              from_a[i * p.a.row_stride + k * p.a.column_stride] * from_b[k * p.b.row_stride + j * p.b.column_stride];
        }
        double& to = c[n * p.c.batch_stride + i * p.c.row_stride + j * p.c.column_stride];
        to = p.accumulate ? to + sum : sum;
      }
    }
  }
}

template class matmul<float>;
template class matmul<double>;

}  // namespace train_gpt
