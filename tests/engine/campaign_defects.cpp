#include "campaign_defects.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <condition_variable>
#include <list>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

namespace forebay::campaign {
namespace {

constexpr std::uint64_t lost_one_in = 13;
constexpr std::uint64_t first_contents = 100;  // operations before the first step, about
constexpr byte_count length_mask = 0x3fff;
constexpr byte_count offset_mask = 0xffff;
constexpr byte_count tail_unit = 8_KiB;
constexpr std::chrono::milliseconds behind_its_completion{2};
constexpr std::chrono::seconds longer_than_patience{3};

/// Gives a copy of each operation to the right backend, and completes the original as the defect has it.
class defective_backend final : public io::backend {
 public:
  defective_backend(std::unique_ptr<io::backend> inner, defect what)
      : what_(what), inner_(std::move(inner)), thread_([this] { serve(); }) {
    if (what_ == defect::descriptor_left) {
      [[maybe_unused]] const int left = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    }
  }

  ~defective_backend() override {
    {
      const std::scoped_lock lock(mutex_);
      stop_ = true;
    }
    changed_.notify_all();
    thread_.join();
    inner_.reset();
  }

  void submit(io::operation& op) noexcept override {
    flight& f = take_off(op);
    std::unique_lock lock(mutex_);
    const bool lost = ++submitted_ > first_contents && submitted_ % lost_one_in == 0;
    const time_point now = std::chrono::steady_clock::now();
    if (what_ == defect::partial_submit && lost) {
      later_.push_back({now + longer_than_patience, [this, &f] { land(f, {ECANCELED, 0}); }});
    } else if (what_ == defect::partial_success && lost) {
      later_.push_back({now, [this, &f] { land(f, {0, f.believed}); }});
    } else if (what_ == defect::completes_early) {
      io::operation* original = std::exchange(f.target, nullptr);
      later_.push_back({now, [original, bytes = f.believed] { original->complete(*original, {0, bytes}); }});
      later_.push_back({now + behind_its_completion, [this, &f] { inner_->submit(f.copy); }});
    } else {
      exchange_with_another(f);
      lock.unlock();
      inner_->submit(f.copy);
      return;
    }
    changed_.notify_all();
  }

  void register_memory(std::span<std::byte> memory) override { inner_->register_memory(memory); }
  void register_files(std::span<const int> files) override { inner_->register_files(files); }
  void tune(unsigned depth, byte_count merge) override { inner_->tune(depth, merge); }
  [[nodiscard]] std::string name() const override { return inner_->name(); }
  [[nodiscard]] std::vector<std::string> degradations() const override { return inner_->degradations(); }

 private:
  struct flight {
    defective_backend* owner = nullptr;
    io::operation copy;
    io::operation* target = nullptr;  // who is told; null: nobody any more
    byte_count believed = 0;          // what the defect takes for the length
    flight* partner = nullptr;
    std::list<flight>::iterator self;
  };
  struct task {
    time_point when;
    std::function<void()> what;
  };

  flight& take_off(io::operation& op) {
    const std::scoped_lock lock(mutex_);
    flight& f = flights_.emplace_back();
    f.self = std::prev(flights_.end());
    f.owner = this;
    f.target = &op;
    f.believed = op.bytes;
    f.copy.kind = op.kind;
    f.copy.file = op.file;
    f.copy.offset = what_ == defect::short_offset ? op.offset & offset_mask : op.offset;
    f.copy.memory = op.memory;
    f.copy.bytes = what_ == defect::short_length   ? op.bytes & length_mask
                   : what_ == defect::tail_dropped ? align_down(op.bytes, tail_unit)
                                                   : op.bytes;
    f.copy.alignment = op.alignment;
    f.copy.urgency = op.urgency;
    f.copy.context = &f;
    f.copy.complete = [](io::operation& self, io::result outcome) noexcept {
      auto& mine = *static_cast<flight*>(self.context);
      mine.owner->land(mine, mine.owner->distorted(mine, outcome));
    };
    if (what_ == defect::file_left) {
      leave_a_file_beside(op.file);
    }
    return f;
  }

  io::result distorted(const flight& f, io::result outcome) const noexcept {
    switch (what_) {
      case defect::result_never_read:
        return {0, f.believed};
      case defect::errno_lost:
        return {0, outcome.bytes};
      default:
        return {outcome.error_number, outcome.bytes == f.copy.bytes ? f.believed : outcome.bytes};
    }
  }

  /// Under the lock: pairs the operation with one of its like that is still in flight.
  void exchange_with_another(flight& f) {
    if (what_ != defect::completions_exchanged) {
      return;
    }
    for (flight& other : flights_) {
      if (&other != &f && other.partner == nullptr && other.copy.kind == f.copy.kind &&
          other.copy.bytes == f.copy.bytes) {
        std::swap(other.target, f.target);
        other.partner = &f;
        f.partner = &other;
        return;
      }
    }
  }

  void land(flight& f, io::result outcome) noexcept {
    io::operation* target = nullptr;
    {
      const std::scoped_lock lock(mutex_);
      target = f.target;
      if (f.partner != nullptr && f.partner->partner == &f) {
        f.partner->partner = f.partner;  // paired for ever, with nobody who is there
      }
      flights_.erase(f.self);
      changed_.notify_all();
    }
    if (target != nullptr) {
      target->complete(*target, outcome);
    }
  }

  void serve() {
    std::unique_lock lock(mutex_);
    for (;;) {
      const auto next =
          std::min_element(later_.begin(), later_.end(), [](const task& a, const task& b) { return a.when < b.when; });
      if (next == later_.end()) {
        if (stop_) {
          return;
        }
        changed_.wait(lock);
      } else if (const time_point when = next->when; !stop_ && when > std::chrono::steady_clock::now()) {
        changed_.wait_until(lock, when);
      } else {
        const task due = *next;
        later_.erase(next);
        lock.unlock();
        due.what();
        lock.lock();
      }
    }
  }

  static void leave_a_file_beside(int file) {
    std::array<char, PATH_MAX> path{};
    const std::string link = "/proc/self/fd/" + std::to_string(file);
    if (::readlink(link.c_str(), path.data(), path.size() - 1) > 0) {
      const std::string left = std::string(path.data()) + ".left";
      ::close(::open(left.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    }
  }

  defect what_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::list<flight> flights_;
  std::list<task> later_;
  std::uint64_t submitted_ = 0;
  bool stop_ = false;
  std::unique_ptr<io::backend> inner_;
  std::thread thread_;
};

}  // namespace

std::function<std::unique_ptr<io::backend>(std::unique_ptr<io::backend>)> plant(defect what) {
  return [what](std::unique_ptr<io::backend> right) -> std::unique_ptr<io::backend> {
    return std::make_unique<defective_backend>(std::move(right), what);
  };
}

}  // namespace forebay::campaign
