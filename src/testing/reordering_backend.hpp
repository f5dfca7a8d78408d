#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <forebay/io/backend.hpp>

namespace forebay::testing {

/// How long a completion is held: until so many operations have been submitted behind it, or for this time.
struct disorder {
  std::uint64_t later = 0;
  duration limit{};
};

/// Passes operations on to another backend, and holds some of their completions until later ones have been submitted.
/// Its destructor lets go of all that is held.
class reordering_backend final : public io::backend {
 public:
  /// `choose` says which operations are held; called once for each, on the submitting thread.
  using chooser = std::function<std::optional<disorder>(const io::operation&)>;
  reordering_backend(std::unique_ptr<io::backend> inner, chooser choose);
  ~reordering_backend() override;

  void submit(io::operation& op) noexcept override;
  void register_memory(std::span<std::byte> memory) override { inner_->register_memory(memory); }
  void register_files(std::span<const int> files) override { inner_->register_files(files); }
  void tune(unsigned depth, byte_count merge) override { inner_->tune(depth, merge); }
  [[nodiscard]] std::string name() const override { return inner_->name(); }
  [[nodiscard]] std::vector<std::string> degradations() const override { return inner_->degradations(); }

 private:
  struct held_operation {
    reordering_backend* owner;
    io::operation* op;
    void (*complete)(io::operation&, io::result) noexcept;
    void* context;
    std::uint64_t release_at;  // when so many have been submitted
    duration limit;
    bool arrived = false;
    io::result outcome{};
    time_point until{};
  };
  using holdings = std::list<held_operation>;

  static void arrive(io::operation& op, io::result outcome) noexcept;
  void serve();
  [[nodiscard]] holdings::iterator releasable();
  [[nodiscard]] time_point next_limit() const;

  chooser choose_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t submitted_ = 0;
  holdings held_;  // struck and not delivered yet, in the order of submission
  bool stop_ = false;
  std::unique_ptr<io::backend> inner_;
  std::thread thread_;
};

}  // namespace forebay::testing
