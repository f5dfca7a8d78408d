#include <forebay/transfer/mover.hpp>

#include <algorithm>
#include <utility>

#include <forebay/base/contract.hpp>

namespace forebay {
namespace {

bool touches_storage(route way) { return way != route::host_to_device && way != route::device_to_host; }

void wait_quietly(stream& s) noexcept {
  try {
    s.synchronize();
  } catch (...) {  // a failed stream does nothing any more
  }
}

/// A demand overtakes what is only foreseen, and reads ahead overtake write-backs.
std::uint8_t urgency_of(const move& m, io::operation_kind kind) {
  return m.priority == 0 ? 0 : (kind == io::operation_kind::read ? 1 : 2);
}

bool better(const move* a, const move* b) {
  return std::pair(a->priority, a->sequence) < std::pair(b->priority, b->sequence);
}

}  // namespace

mover::mover(device& on, page_store* store, staging_pool& staging, const mover_options& options,
             unique_function<void()> wake, telemetry::timeline* timeline)
    : device_(on),
      store_(store),
      staging_(staging),
      options_(options),
      wake_(std::move(wake)),
      timeline_(timeline),
      h2d_(device_.make_stream(stream_kind::host_to_device)),
      d2h_(device_.make_stream(stream_kind::device_to_host)),
      paths_(store == nullptr ? 0 : store->path_count()) {
  if (timeline_ != nullptr) {
    h2d_lane_ = timeline_->lane("host to device");
    d2h_lane_ = timeline_->lane("device to host");
  }
}

mover::~mover() {
  // Moves must not start new chunks, but what is in flight still uses the caller's memory.
  for (move* m : active_) {
    m->issued = m->pieces;
  }
  const auto busy = [&] {
    return std::any_of(active_.begin(), active_.end(), [](const move* m) { return m->in_flight != 0; });
  };
  const auto abandon_second_legs = [&] {
    for (task* t : std::exchange(second_legs_, {})) {
      end_piece(*t);
    }
    for (task* t : std::exchange(second_writes_, {})) {
      end_piece(*t);
    }
  };
  abandon_second_legs();
  while (busy()) {
    wait_for_completion();
    take_completions();
    abandon_second_legs();
  }
}

void mover::start(move& m) {
  m.sequence = sequence_++;
  m.pieces = ceil_div(m.bytes, piece_bytes(m));
  m.issued = m.copied = m.in_flight = 0;
  m.enqueued_at = 0;
  m.failure = nullptr;
  active_.insert(std::upper_bound(active_.begin(), active_.end(), &m, better), &m);
}

void mover::hasten(move& m, std::uint64_t priority) {
  if (priority >= m.priority) {
    return;
  }
  m.priority = priority;
  std::sort(active_.begin(), active_.end(), better);
}

void mover::advance(std::vector<move*>& ended) {
  take_completions();
  issue();
  ended.insert(ended.end(), ended_.begin(), ended_.end());
  ended_.clear();
}

void mover::wait_for_completion() {
  std::unique_lock lock(inbox_mutex_);
  inbox_filled_.wait(lock, [this] { return !inbox_.empty(); });
}

// Completions, on any thread

void mover::storage_done(page_transfer& transfer, std::exception_ptr failure) noexcept {
  task& t = *static_cast<task*>(transfer.owner);
  t.failure = std::move(failure);
  t.owner->post(t);
}

void mover::post(task& t) noexcept {
  t.ended = std::chrono::steady_clock::now();
  const std::scoped_lock lock(inbox_mutex_);
  inbox_.push_back(&t);
  inbox_filled_.notify_one();
  // Under the lock: once it is free the owner may see everything drained and destroy the mover.
  wake_();
}

// Chunks

mover::task& mover::take_task(move& m) {
  if (free_tasks_.empty()) {
    tasks_.emplace_back();
    free_tasks_.push_back(&tasks_.back());
  }
  task& t = *free_tasks_.back();
  free_tasks_.pop_back();
  t.owner = this;
  t.of = &m;
  t.piece = m.issued++;
  t.staging = nullptr;
  t.failure = nullptr;
  ++m.in_flight;
  return t;
}

void mover::give_task(task& t) {
  if (t.staging != nullptr) {
    staging_.give_back(t.staging);
  }
  t.of = nullptr;
  free_tasks_.push_back(&t);
}

bool mover::in_chunks(const move& m) const noexcept { return touches_storage(m.way); }

byte_count mover::piece_bytes(const move& m) const noexcept {
  return in_chunks(m) ? store_->chunk_bytes() : options_.copy_piece;
}

extent mover::piece_extent(const move& m, std::uint64_t piece) const noexcept {
  const byte_count offset = piece * piece_bytes(m);
  return {offset, std::min(piece_bytes(m), m.bytes - offset)};
}

link_use& mover::storage_link(const move& m, std::uint64_t piece, io::operation_kind kind) {
  path_load& load = paths_[store_->path_of(m.page, piece)];
  return kind == io::operation_kind::read ? load.reads : load.writes;
}

bool mover::storage_is_full(const move& m, std::uint64_t piece, io::operation_kind kind) {
  return m.priority != 0 && storage_link(m, piece, kind).bytes_in_flight >= options_.bytes_per_path;
}

void mover::issue() {
  // Second legs first: they hold staging memory, and their moves are the older ones.
  while (!second_legs_.empty() && h2d_use_.in_flight < options_.copies_in_flight) {
    task& t = *second_legs_.front();
    second_legs_.erase(second_legs_.begin());
    start_copy(t, copy_direction::host_to_device, t.transfer.memory);
  }
  for (auto it = second_writes_.begin(); it != second_writes_.end();) {
    task& t = **it;
    if (storage_is_full(*t.of, t.piece, io::operation_kind::write)) {
      ++it;
    } else {
      it = second_writes_.erase(it);
      start_storage(t, io::operation_kind::write, t.staging);
    }
  }
  for (move* m : active_) {
    while (m->failure == nullptr && m->issued < m->pieces && issue_one(*m)) {
    }
  }
  // A move whose every piece is accounted for has ended; one that failed ends when its pieces in flight are drained.
  for (auto it = active_.begin(); it != active_.end();) {
    move* m = *it;
    if (m->in_flight == 0 && (m->issued == m->pieces || m->failure != nullptr)) {
      ended_.push_back(m);
      it = active_.erase(it);
    } else {
      ++it;
    }
  }
}

bool mover::issue_one(move& m) {
  switch (m.way) {
    case route::host_to_device:
      return issue_copy(m, copy_direction::host_to_device, nullptr);
    case route::device_to_host:
      return issue_copy(m, copy_direction::device_to_host, nullptr);
    case route::storage_to_host:
    case route::host_to_storage:
      return issue_storage(m, m.host + piece_extent(m, m.issued).offset, nullptr);
    case route::storage_to_device: {
      if (m.host != nullptr) {
        return issue_storage(m, m.host + piece_extent(m, m.issued).offset, nullptr);
      }
      std::byte* chunk = staging_.take();
      if (chunk == nullptr) {
        return false;
      }
      return issue_storage(m, chunk, chunk);
    }
    case route::device_to_storage: {
      std::byte* chunk = staging_.take();
      if (chunk == nullptr) {
        return false;
      }
      return issue_copy(m, copy_direction::device_to_host, chunk);
    }
  }
  return false;
}

bool mover::issue_storage(move& m, std::byte* memory, std::byte* staging) {
  const auto kind = m.way == route::host_to_storage ? io::operation_kind::write : io::operation_kind::read;
  if (storage_is_full(m, m.issued, kind)) {
    if (staging != nullptr) {
      staging_.give_back(staging);
    }
    return false;
  }
  task& t = take_task(m);
  t.staging = staging;
  start_storage(t, kind, memory);
  return true;
}

bool mover::issue_copy(move& m, copy_direction direction, std::byte* staging) {
  const link_use& link = direction == copy_direction::host_to_device ? h2d_use_ : d2h_use_;
  if (link.in_flight >= options_.copies_in_flight) {
    if (staging != nullptr) {
      staging_.give_back(staging);
    }
    return false;
  }
  task& t = take_task(m);
  t.staging = staging;
  start_copy(t, direction, staging != nullptr ? staging : m.host + piece_extent(m, t.piece).offset);
  return true;
}

void mover::start_storage(task& t, io::operation_kind kind, std::byte* memory) {
  t.at = leg::storage;
  t.started = std::chrono::steady_clock::now();
  t.link = &storage_link(*t.of, t.piece, kind);  // the store may end it on another path
  t.link->begin(piece_extent(*t.of, t.piece).bytes, t.started);
  t.transfer.urgency = urgency_of(*t.of, kind);
  t.transfer.kind = kind;
  t.transfer.page = t.of->page;
  t.transfer.chunk = t.piece;
  t.transfer.memory = memory;
  t.transfer.complete = &mover::storage_done;
  t.transfer.owner = &t;
  store_->submit(t.transfer);
}

void mover::start_copy(task& t, copy_direction direction, std::byte* host) {
  move& m = *t.of;
  const extent piece = piece_extent(m, t.piece);
  const bool down = direction == copy_direction::host_to_device;
  stream& on = down ? *h2d_ : *d2h_;
  t.at = leg::copy;
  t.started = std::chrono::steady_clock::now();
  t.link = down ? &h2d_use_ : &d2h_use_;
  t.link->begin(piece.bytes, t.started);
  bool copying = false;
  try {
    std::byte* device = m.device + piece.offset;
    on.copy(down ? device : host, down ? host : device, piece.bytes, direction);
    copying = true;
    if (down && ++m.copied == m.pieces) {
      m.enqueued_at = on.record();
    }
    on.notify([this, &t] { post(t); });
  } catch (...) {
    t.failure = std::current_exception();
    if (copying) {
      wait_quietly(on);  // nobody will say when this copy is over, and its memory must not be reused before
    }
    post(t);
  }
}

// Completions, on the scheduler's thread

void mover::take_completions() {
  {
    const std::scoped_lock lock(inbox_mutex_);
    std::swap(inbox_, taken_);
  }
  for (task* t : taken_) {
    finish_leg(*t);
  }
  taken_.clear();
}

void mover::finish_leg(task& t) {
  move& m = *t.of;
  t.link->end(piece_extent(m, t.piece).bytes, t.ended);
  if (t.at == leg::storage) {
    if (t.failure == nullptr && m.way == route::storage_to_device) {
      second_legs_.push_back(&t);
      return;
    }
  } else {
    const bool down = m.way == route::host_to_device || m.way == route::storage_to_device;
    if (t.failure == nullptr) {
      t.failure = (down ? *h2d_ : *d2h_).failure();
    }
    if (timeline_ != nullptr) {
      timeline_->record_in_order(
          {down ? h2d_lane_ : d2h_lane_, std::string(m.name), t.started, t.ended, piece_extent(m, t.piece).bytes});
    }
    if (t.failure == nullptr && m.way == route::device_to_storage) {
      second_writes_.push_back(&t);
      return;
    }
  }
  end_piece(t);
}

void mover::end_piece(task& t) {
  move& m = *t.of;
  if (m.failure == nullptr) {
    m.failure = t.failure;
  }
  --m.in_flight;
  give_task(t);
}

std::string_view to_string(route r) {
  constexpr std::array<std::string_view, 6> names{"read from storage", "write to storage",   "copy to the device",
                                                  "copy to the host",  "read to the device", "write from the device"};
  return names.at(static_cast<std::size_t>(r));
}

}  // namespace forebay
