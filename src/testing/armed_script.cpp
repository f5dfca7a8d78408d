#include "testing/detail/armed_script.hpp"

#include <algorithm>
#include <utility>

namespace forebay::testing::detail {
namespace {

/// splitmix64 (Steele, Lea, Flood 2014): one well-mixed word.
std::uint64_t mix(std::uint64_t z) {
  z += 0x9E3779B97F4A7C15U;
  z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27U)) * 0x94D049BB133111EBU;
  return z ^ (z >> 31U);
}

double unit_interval(std::uint64_t word) { return static_cast<double>(word >> 11U) * 0x1p-53; }

bool undoes(fault_effect what) {
  return what == fault_effect::tear || what == fault_effect::stale_read || what == fault_effect::stale_completion;
}

/// The kind that alone can suffer an effect.
std::optional<io::operation_kind> only_kind(fault_effect what) {
  switch (what) {
    case fault_effect::tear:
      return io::operation_kind::write;
    case fault_effect::stale_read:
    case fault_effect::flip_bit:
      return io::operation_kind::read;
    default:
      return std::nullopt;
  }
}

}  // namespace

bool armed_script::looks_at(const fault& f, const transfer& t) const {
  const std::optional<io::operation_kind> only = only_kind(f.what);
  if ((only && *only != t.kind) || (f.where.kind && *f.where.kind != t.kind) ||
      (f.where.file >= 0 && f.where.file != t.file)) {
    return false;
  }
  const auto path = static_cast<std::size_t>(f.where.path);
  return f.where.path < 0 || (path < paths_.size() && paths_[path] == t.file);
}

/// A random word of this transfer and this fault alone.
std::uint64_t armed_script::word(const transfer& t, std::size_t index, std::uint64_t salt) {
  std::uint64_t w = mix(seed_);
  const std::uint64_t visit = visits_[place_of(t)];
  for (const std::uint64_t part : {static_cast<std::uint64_t>(t.kind), t.offset, visit, index + 0U, salt}) {
    w = mix(w ^ part);
  }
  return w;
}

bool armed_script::strikes(std::size_t index, const transfer& t) {
  armed_fault& f = faults_[index];
  const fault_trigger& when = f.what.when;
  if (!looks_at(f.what, t)) {
    return false;
  }
  const std::uint64_t number = ++f.looked_at;
  if (number < when.first || (number - when.first) % when.every != 0 || f.strikes >= when.most ||
      unit_interval(word(t, index, 0)) >= when.probability) {
    return false;
  }
  ++f.strikes;
  return true;
}

int armed_script::refuse(io::interceptor::service wanted) {
  for (const armed_fault& f : faults_) {
    if (f.what.what == fault_effect::refuse && f.what.service == wanted) {
      ++seen_.refused;
      return f.what.error_number;
    }
  }
  return 0;
}

std::optional<disorder> armed_script::disorder_of(const io::operation& op) {
  const transfer whole{op.kind, op.file, op.offset, op.memory, op.bytes};
  for (std::size_t i = 0; i < faults_.size(); ++i) {
    if (faults_[i].what.what == fault_effect::reorder && strikes(i, whole)) {
      ++seen_.reordered;
      return disorder{faults_[i].what.later, faults_[i].what.most};
    }
  }
  return std::nullopt;
}

std::int64_t armed_script::before(const transfer& t) {
  ++seen_.transfers;
  ++visits_[place_of(t)];
  undone_.erase(place_of(t));
  for (std::size_t i = 0; i < faults_.size(); ++i) {
    const fault_effect what = faults_[i].what.what;
    if (what == fault_effect::fail && strikes(i, t)) {
      ++seen_.failed;
      return -std::int64_t{faults_[i].what.error_number};
    }
    if (what == fault_effect::shorten && t.bytes > 1 && strikes(i, t)) {
      ++seen_.shortened;
      return static_cast<std::int64_t>(1 + word(t, i, 1) % (t.bytes - 1));
    }
    if (undoes(what)) {
      note_undoing(i, t);
    }
  }
  return 0;
}

duration armed_script::hold(const transfer& t) {
  duration all{};
  for (std::size_t i = 0; i < faults_.size(); ++i) {
    const fault& f = faults_[i].what;
    if (f.what == fault_effect::delay && strikes(i, t)) {
      const auto spread = static_cast<double>((f.most - f.least).count());
      all += f.least + duration(static_cast<duration::rep>(spread * unit_interval(word(t, i, 1))));
      ++seen_.delayed;
    } else if (f.what == fault_effect::reorder && !reorders_elsewhere_ && strikes(i, t)) {
      all += f.most;
      ++seen_.reordered;
    }
  }
  return all;
}

std::int64_t armed_script::after(const transfer& t, std::int64_t outcome) {
  const std::int64_t moved = outcome;
  outcome = undo(t, outcome);
  if (moved > 0) {
    last_outcome_[static_cast<std::size_t>(t.kind)] = moved;
  }
  for (std::size_t i = 0; i < faults_.size() && outcome > 0; ++i) {
    const fault_effect what = faults_[i].what.what;
    if (what == fault_effect::underreport && outcome > 1 && strikes(i, t)) {
      outcome = static_cast<std::int64_t>(1 + word(t, i, 1) % static_cast<std::uint64_t>(outcome - 1));
      ++seen_.underreported;
    } else if (what == fault_effect::flip_bit && strikes(i, t)) {
      flip(i, t, moved);
    }
  }
  return outcome;
}

void armed_script::flip(std::size_t index, const transfer& t, std::int64_t outcome) {
  const std::uint64_t bit = word(t, index, 1) % (static_cast<std::uint64_t>(outcome) * 8);
  t.memory[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
  ++seen_.flipped;
}

void armed_script::note_undoing(std::size_t index, const transfer& t) {
  const fault_effect what = faults_[index].what.what;
  const std::int64_t earlier = last_outcome_[static_cast<std::size_t>(t.kind)];
  if (undone_.count(place_of(t)) != 0 || (what == fault_effect::stale_completion && earlier == 0) ||
      !strikes(index, t)) {
    return;
  }
  undoing u;
  u.what = what;
  u.reported = earlier;
  u.old = old_bytes(t);
  if (what == fault_effect::tear) {
    const byte_count sector = sector_of(t);
    u.keep = word(t, index, 1) % (t.bytes / sector) * sector;
  }
  undone_.emplace(place_of(t), std::move(u));
}

/// What the kernel's result becomes when it is undone.
std::int64_t armed_script::undo(const transfer& t, std::int64_t outcome) {
  const auto found = undone_.find(place_of(t));
  if (found == undone_.end()) {
    return outcome;
  }
  const undoing u = std::move(found->second);
  undone_.erase(found);
  if (outcome <= static_cast<std::int64_t>(u.keep)) {
    return outcome;
  }
  u.old.put_back(t, u.keep, static_cast<byte_count>(outcome));
  ++(u.what == fault_effect::tear         ? seen_.torn
     : u.what == fault_effect::stale_read ? seen_.stale_reads
                                          : seen_.stale_completions);
  return u.what == fault_effect::stale_completion ? u.reported : outcome;
}

}  // namespace forebay::testing::detail
