#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include <forebay/base/contract.hpp>
#include <forebay/base/dtype.hpp>
#include <forebay/engine/options.hpp>
#include <forebay/engine/recomputation.hpp>
#include <forebay/engine/report.hpp>
#include <forebay/plan/order.hpp>

namespace forebay {

class engine;
namespace detail {
struct step_plan;
class recompute_claim;
}  // namespace detail

/// The right to use a step's tensors on one stream (device steps) or on this thread (host steps). Move-only; while it
/// lives, its blocks cannot move. Its end is a point on the stream; only after that has passed may a block be evicted.
class lease {
 public:
  lease() = default;
  lease(lease&& other) noexcept;
  lease& operator=(lease&& other) noexcept;
  ~lease();

  /// The tensor's elements in the step's tier: valid for work on the lease's stream, and on the host only after the
  /// stream was waited for (host steps: at once). \throws usage_error when the step does not access it or T is not its
  /// dtype.
  template <typename T>
  [[nodiscard]] std::span<T> data(tensor_id tensor) const {
    const std::span<std::byte> raw = bytes(tensor, dtype_of<T>::value);
    return {reinterpret_cast<T*>(raw.data()), raw.size() / sizeof(T)};
  }
  [[nodiscard]] std::span<std::byte> bytes(tensor_id tensor) const;
  /// The step's scratch bytes, contents undefined, 256-byte aligned.
  [[nodiscard]] std::span<std::byte> workspace() const;

  /// Ends the lease now; the destructor does the same.
  void release() noexcept;

 private:
  friend class engine;
  [[nodiscard]] std::span<std::byte> bytes(tensor_id tensor, dtype expected) const;

  engine* engine_ = nullptr;
  std::uint32_t slot_ = 0;
  std::uint32_t generation_ = 0;
};

/// One pass over the order. Move-only. Destroying it unfinished (an exception passes) waits for what is in flight.
class iteration {
 public:
  iteration(iteration&& other) noexcept;
  iteration& operator=(iteration&&) = delete;
  ~iteration();

  /// Brings the step's tensors into its tier and leases them. Device steps: work may be enqueued on `on` at once, which
  /// waits for the copies itself. Host steps: blocks until the data is there. Any step may be acquired at any time, in
  /// any order; what was not foreseen is fetched on demand and counted as a miss. \throws usage_error (wrong place, a
  /// tensor never initialised), capacity_error (does not fit beside the leases that this thread holds), and the
  /// engine's first failure.
  [[nodiscard]] lease acquire(step_id step, stream& on);
  [[nodiscard]] lease acquire(step_id step);

  /// The same for a step that is described here and now; while recording it becomes part of the order.
  [[nodiscard]] lease acquire(std::string_view name, const std::vector<access>& accesses, stream& on,
                              const step_options& options = {});
  [[nodiscard]] lease acquire(std::string_view name, const std::vector<access>& accesses, const step_options& options);

  /// Joins: waits until all leased work is done, drops this iteration's activations, throws the first failure.
  iteration_report finish();

  [[nodiscard]] std::uint64_t number() const noexcept { return number_; }

 private:
  friend class engine;
  iteration(engine& owner, std::uint64_t number) : engine_(&owner), number_(number) {}

  engine* engine_;
  std::uint64_t number_;
};

/// The tiered memory manager. Calls may come from any thread, one iteration at a time.
///
/// Life: add tensors, set (or record) the order, write initial contents, then iterate.
class engine {
 public:
  /// Takes the memory of all tiers. \throws usage_error, capacity_error, io_error, unsupported_error.
  explicit engine(engine_options options);
  /// Waits for what is in flight, never throws. No thread, file or pinned page survives.
  ~engine();
  engine(const engine&) = delete;
  engine& operator=(const engine&) = delete;

  /// Registers a tensor; its contents are undefined until written, zeroed or created by a step.
  /// \throws usage_error on an empty shape extent or a name already taken.
  tensor_id add(tensor_spec spec);
  [[nodiscard]] const tensor_spec& spec(tensor_id tensor) const;
  /// All tensors in registration order.
  [[nodiscard]] std::vector<tensor_id> tensors() const;

  /// Each tier's exact smallest capacity with which every order of these steps runs: the largest working set, padding
  /// and workspace included; for the host also one transfer chunk; for the home tier room for all tensors. What is
  /// recomputed only where it is worth it (`recompute_policy::automatic`) does not count.
  [[nodiscard]] tier_bytes minimum_capacity(const order& steps, const std::vector<recomputation>& again = {}) const;
  /// Makes this the order: packs tensors that hold nothing yet into blocks, reserves storage, plans.
  /// `again`: how activations can be made again; those with the same `before` are run in this sequence.
  /// \throws capacity_error with the tier, the step, what it needs and the capacity; usage_error naming the
  /// recomputation and the tensor when it reads what does not exist there, or creates what could not be given up.
  void set_order(order steps, std::vector<recomputation> again = {});
  /// As it was set, without recomputations.
  [[nodiscard]] const order& current_order() const;

  /// Starts an iteration. \throws usage_error while another one is unfinished, or no order is set.
  [[nodiscard]] iteration begin(std::uint64_t number);
  /// Starts an iteration whose steps, acquired by description, become the order when it finishes.
  [[nodiscard]] iteration record(std::uint64_t number);

  /// Sets or gets contents outside of steps, streamed from or to wherever the tensor lives. `offset` in bytes.
  /// \throws usage_error while a lease holds the tensor, out of range, or (read) never initialised.
  void write(tensor_id tensor, std::span<const std::byte> contents, byte_count offset = 0);
  void read(tensor_id tensor, std::span<std::byte> contents, byte_count offset = 0);
  template <typename T>
  void write(tensor_id tensor, std::span<const T> contents) {
    FOREBAY_EXPECTS(spec(tensor).type == dtype_of<T>::value, "the elements' type is not the tensor's dtype");
    write(tensor, std::as_bytes(contents), 0);
  }
  template <typename T>
  void read(tensor_id tensor, std::span<T> contents) {
    FOREBAY_EXPECTS(spec(tensor).type == dtype_of<T>::value, "the elements' type is not the tensor's dtype");
    read(tensor, std::as_writable_bytes(contents), 0);
  }
  /// Makes the tensor all zero bytes without moving any.
  void zero(tensor_id tensor);

  /// A compute stream of the device, owned by the engine; further ones by `device().make_stream`, which must not
  /// outlive the engine.
  [[nodiscard]] stream& compute_stream();
  [[nodiscard]] forebay::device& device();
  [[nodiscard]] telemetry::timeline* timeline() const;
  [[nodiscard]] tier_bytes capacity() const;
  [[nodiscard]] tier_bytes used() const;
  [[nodiscard]] tier_bytes peak() const;
  [[nodiscard]] engine_report report() const;
  /// Measured, predicted, bound, what binds, and what would help, from what the last iterations took. Some dozen bounds
  /// are found for it, on the calling thread: a second or so for an order of a thousand steps. \throws usage_error
  /// during an iteration.
  [[nodiscard]] plan_report analyse() const;

 private:
  friend class lease;
  friend class iteration;
  [[nodiscard]] lease grant(const detail::step_plan& step, stream* on);
  /// Makes again what the step needs and was given up, then grants it.
  [[nodiscard]] lease grant_complete(const detail::step_plan& step, stream* on);
  void make_again(const detail::step_plan& step, stream* on, const detail::recompute_claim* outer);
  void run_again(std::uint32_t recomputation, std::uint32_t step, stream* on, const detail::recompute_claim& claim);

  struct impl;
  std::unique_ptr<impl> impl_;
};

}  // namespace forebay
