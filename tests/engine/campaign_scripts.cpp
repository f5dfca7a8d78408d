// The random trials of a campaign.
#include <array>
#include <cerrno>
#include <random>
#include <string>

#include "campaign.hpp"

namespace forebay::campaign {
namespace {

using io::operation_kind;
using testing::fault;
using testing::fault_effect;
using testing::fault_trigger;
using namespace std::chrono_literals;

class script_writer {
 public:
  explicit script_writer(std::uint64_t seed) : random_(seed * 0x9E3779B97F4A7C15U + 1) {}

  std::uint64_t pick(std::uint64_t n) { return random_() % n; }
  bool one_in(std::uint64_t n) { return pick(n) == 0; }
  double chance(double most) { return most * static_cast<double>(1 + pick(20)) / 20.0; }

  /// The run must end in the right bytes: delays, disorder, short transfers, errors that pass, refused services.
  fault passing(const setup& how) {
    fault f;
    switch (pick(6)) {
      case 0:
        f.what = fault_effect::delay;
        f.most = std::chrono::microseconds(100 + pick(3000));
        f.when.probability = chance(0.3);
        break;
      case 1:
        f.what = fault_effect::reorder;
        f.later = 1 + pick(10);
        f.most = std::chrono::milliseconds(1 + pick(5));
        f.when.probability = chance(0.2);
        break;
      case 2:
        f.what = one_in(2) ? fault_effect::shorten : fault_effect::underreport;
        f.when.probability = chance(0.3);
        break;
      case 3: {
        static constexpr std::array<int, 4> transient{EINTR, EAGAIN, EBUSY, ENOMEM};
        f.error_number = transient.at(pick(transient.size()));
        f.when.probability = chance(0.1);
        break;
      }
      case 4:
        f.error_number = EIO;  // twice at most: what the backend tries again
        f.when = {1 + pick(60), 1 + pick(20), 1 + pick(2), 1.0};
        break;
      default:
        refuse_a_service(f, how);
        break;
    }
    where(f, how);
    return f;
  }

  /// The run may end in an error that the kernel gave.
  fault ending(const setup& how) {
    static constexpr std::array<int, 6> errors{EIO, ENOSPC, EROFS, ENXIO, EAGAIN, EBADF};
    fault f;
    f.error_number = errors.at(pick(errors.size()));
    if (one_in(2)) {
      f.when.first = 1 + pick(120);
      f.when.most = one_in(2) ? 1 : f.when.most;
    } else {
      f.when.probability = chance(0.05);
    }
    where(f, how);
    return f;
  }

  /// Wrong bytes arrive and success is reported.
  fault silent(const setup& how) {
    static constexpr std::array<fault_effect, 4> effects{fault_effect::flip_bit, fault_effect::tear,
                                                         fault_effect::stale_read, fault_effect::stale_completion};
    fault f;
    f.what = effects.at(pick(effects.size()));
    if (one_in(2)) {
      f.when.first = 1 + pick(60);
      f.when.most = 1 + pick(3);
    } else {
      f.when.probability = chance(0.05);
    }
    where(f, how);
    return f;
  }

 private:
  void refuse_a_service(fault& f, const setup& how) {
    static constexpr std::array<int, 4> errors{EPERM, ENOSYS, EACCES, ENOMEM};
    using service = io::interceptor::service;
    f.what = fault_effect::refuse;
    f.error_number = errors.at(pick(errors.size()));
    f.service = std::array{service::registered_memory, service::registered_files, service::ring}.at(
        pick(how.kind == io::backend_kind::automatic ? 3 : 2));
  }

  void where(fault& f, const setup& how) {
    if (f.what == fault_effect::refuse) {
      return;
    }
    if (one_in(3)) {
      f.where.path = static_cast<int>(pick(how.paths));
    }
    const bool of_one_kind =
        f.what == fault_effect::flip_bit || f.what == fault_effect::stale_read || f.what == fault_effect::tear;
    if (!of_one_kind && one_in(2)) {
      f.where.kind = one_in(2) ? operation_kind::read : operation_kind::write;
    }
  }

  std::mt19937_64 random_;
};

}  // namespace

trial make_trial(std::uint64_t seed) {
  script_writer writer(seed);
  trial t;
  t.seed = seed;
  static constexpr std::array<io::backend_kind, 3> kinds{io::backend_kind::automatic, io::backend_kind::threads,
                                                         io::backend_kind::automatic};
  t.how.kind = kinds.at(writer.pick(kinds.size()));
  t.how.paths = 1 + static_cast<unsigned>(writer.pick(2));
  t.how.direct = !writer.one_in(5);
  t.how.prefetch = !writer.one_in(6);
  t.how.room = writer.one_in(2) ? 0.0 : writer.chance(0.4);
  t.how.checksums = !writer.one_in(4);
  for (std::uint64_t n = 1 + writer.pick(3); n > 0; --n) {
    t.script.faults.push_back(writer.passing(t.how));
  }
  if (writer.one_in(3)) {
    t.script.faults.push_back(writer.ending(t.how));
  }
  if (t.how.checksums && writer.one_in(2)) {
    t.script.faults.push_back(writer.silent(t.how));
  }
  return t;
}

std::string describe(const trial& t) {
  const auto yes_no = [](bool on) { return on ? "yes" : "no"; };
  const char* kind = t.how.kind == io::backend_kind::automatic ? "automatic"
                     : t.how.kind == io::backend_kind::uring   ? "io_uring"
                                                               : "threads";
  return "seed " + std::to_string(t.seed) + ": backend " + kind + ", paths " + std::to_string(t.how.paths) +
         ", checksums " + yes_no(t.how.checksums) + ", direct " + yes_no(t.how.direct) + ", prefetch " +
         yes_no(t.how.prefetch) + ", room " + std::to_string(t.how.room) + "\n" + to_text(t.script);
}

}  // namespace forebay::campaign
