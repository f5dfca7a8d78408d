#include <forebay/checkpoint/digest.hpp>

#include <array>
#include <cstdint>
#include <new>
#include <string_view>

#include <fmt/format.h>
#include <xxhash.h>

#include "checkpoint/detail/pieces.hpp"

namespace forebay {

struct tensor_digest::impl {
  impl() : state(XXH3_createState()) {
    if (!state) {
      throw std::bad_alloc();
    }
    XXH3_128bits_reset(state.get());
  }

  void update(const void* data, std::size_t bytes) { XXH3_128bits_update(state.get(), data, bytes); }

  void update(std::uint64_t value) {
    std::array<unsigned char, 8> bytes{};
    for (unsigned char& byte : bytes) {
      byte = static_cast<unsigned char>(value & 0xffU);
      value >>= 8U;
    }
    update(bytes.data(), bytes.size());
  }

  void update(std::string_view text) {
    update(std::uint64_t{text.size()});
    update(text.data(), text.size());
  }

  struct free_state {
    void operator()(XXH3_state_t* s) const noexcept { XXH3_freeState(s); }
  };
  std::unique_ptr<XXH3_state_t, free_state> state;
  detail::piece_buffer buffer;
};

tensor_digest::tensor_digest() : impl_(std::make_unique<impl>()) {}
tensor_digest::~tensor_digest() = default;
tensor_digest::tensor_digest(tensor_digest&&) noexcept = default;
tensor_digest& tensor_digest::operator=(tensor_digest&&) noexcept = default;

void tensor_digest::add(const tensor_source& tensor) {
  impl_->update(std::string_view(tensor.name));
  impl_->update(to_string(tensor.type));
  impl_->update(std::uint64_t{tensor.shape.size()});
  for (const std::uint64_t extent : tensor.shape) {
    impl_->update(extent);
  }
  const byte_count bytes = tensor.bytes();
  impl_->update(bytes);
  detail::for_each_piece(bytes, [&](byte_count offset, byte_count length) {
    const std::span<std::byte> piece = impl_->buffer.first(length);
    tensor.read(offset, piece);
    impl_->update(piece.data(), piece.size());
  });
}

std::string tensor_digest::hex() const {
  const XXH128_hash_t hash = XXH3_128bits_digest(impl_->state.get());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

std::string digest(std::span<const tensor_source> tensors) {
  tensor_digest all;
  for (const tensor_source& tensor : tensors) {
    all.add(tensor);
  }
  return all.hex();
}

std::string digest(engine& from, std::span<const tensor_id> tensors) { return digest(engine_sources(from, tensors)); }

}  // namespace forebay
