#include <forebay/store/page_store.hpp>

#include <utility>

#include "store/page_store_impl.hpp"

namespace forebay {

page_store::page_store(page_store_options options, telemetry::timeline* timeline)
    : impl_(std::make_unique<impl>(std::move(options), timeline)) {}

page_store::~page_store() {
  if (impl_ != nullptr && !impl_->process.same_process()) {
    // A forked child has neither our threads nor a right to our files.
    [[maybe_unused]] const impl* abandoned = impl_.release();
  }
}

byte_count page_store::padded_bytes(byte_count bytes) const noexcept { return align_up(bytes, impl_->table->unit()); }

void page_store::reserve(byte_count bytes) {
  const std::scoped_lock lock(impl_->table_mutex);
  impl_->table->reserve(bytes);
  impl_->tune();
}

page_id page_store::allocate(byte_count bytes, std::string name) {
  const std::scoped_lock lock(impl_->table_mutex);
  impl_->adapt();
  return impl_->table->allocate(bytes, std::move(name));
}

bool page_store::renew(page_id page) {
  const std::scoped_lock lock(impl_->table_mutex);
  impl_->adapt();
  return impl_->table->renew(page);
}

void page_store::free(page_id page) {
  const std::scoped_lock lock(impl_->table_mutex);
  impl_->table->free(page);
}

byte_count page_store::chunk_bytes() const noexcept { return impl_->options.chunk; }

std::uint64_t page_store::chunk_count(page_id page) const {
  const std::scoped_lock lock(impl_->table_mutex);
  return impl_->table->at(page).chunks.size();
}

byte_count page_store::padded_chunk_bytes(page_id page, std::uint64_t chunk) const {
  const std::scoped_lock lock(impl_->table_mutex);
  return padded_bytes(impl_->table->chunk_bytes(impl_->table->chunk_at(page, chunk), chunk));
}

std::size_t page_store::path_of(page_id page, std::uint64_t chunk) const {
  const std::scoped_lock lock(impl_->table_mutex);
  return impl_->table->chunk_at(page, chunk).chunks[chunk].place.path;
}

std::size_t page_store::path_count() const noexcept { return impl_->table->paths().size(); }

void page_store::submit(page_transfer& transfer) noexcept { impl_->submit(*this, transfer); }

void page_store::register_memory(std::span<std::byte> memory) { impl_->backend->register_memory(memory); }

byte_count page_store::capacity() const noexcept { return impl_->table->account().capacity(); }
byte_count page_store::used() const noexcept { return impl_->table->account().used(); }
byte_count page_store::peak() const noexcept { return impl_->table->account().peak(); }
byte_count page_store::bytes_read() const noexcept { return impl_->bytes_read.load(); }
byte_count page_store::bytes_written() const noexcept { return impl_->bytes_written.load(); }
std::string page_store::backend_name() const { return impl_->backend->name(); }

double page_store::checksum_seconds() const noexcept { return impl_->hashing.seconds(); }
std::vector<path_rate> page_store::measured_rates() const { return impl_->measured_rates(); }

storage_tuning page_store::tuning() const {
  const std::scoped_lock lock(impl_->table_mutex);
  return impl_->tuning;
}

void page_store::weigh_paths(std::vector<double> weights) {
  const std::scoped_lock lock(impl_->table_mutex);
  impl_->table->weights().set(std::move(weights));
}

std::vector<std::string> page_store::degradations() const {
  std::vector<std::string> all;
  {
    const std::scoped_lock lock(impl_->table_mutex);
    all = impl_->degradations;
  }
  const std::vector<std::string> of_backend = impl_->backend->degradations();
  all.insert(all.end(), of_backend.begin(), of_backend.end());
  return all;
}

}  // namespace forebay
