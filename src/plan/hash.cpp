#include <forebay/plan/hash.hpp>

#include <cstring>

namespace forebay::plan {
namespace {

class fnv {
 public:
  void add(std::uint64_t value) {
    for (int shift = 0; shift < 64; shift += 8) {
      value_ = (value_ ^ ((value >> shift) & 0xffU)) * 0x100000001b3ULL;
    }
  }
  void add(double value) {
    std::uint64_t bits = 0;
    static_assert(sizeof bits == sizeof value);
    std::memcpy(&bits, &value, sizeof bits);
    add(bits);
  }
  [[nodiscard]] std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 0xcbf29ce484222325ULL;
};

}  // namespace

std::uint64_t hash_of(const trace& t) {
  fnv h;
  h.add(std::uint64_t{t.item_bytes.size()});
  for (const byte_count bytes : t.item_bytes) {
    h.add(bytes);
  }
  for (const trace_step& s : t.steps) {
    h.add(static_cast<std::uint64_t>(s.where));
    h.add(s.workspace);
    h.add(std::uint64_t{s.accesses.size()});
    for (const item_access& a : s.accesses) {
      h.add(std::uint64_t{a.item});
      h.add(static_cast<std::uint64_t>(a.how));
    }
  }
  return h.value();
}

std::uint64_t hash_of(const machine& m) {
  fnv h;
  h.add(m.device_capacity);
  h.add(m.host_capacity);
  h.add(m.h2d_rate);
  h.add(m.d2h_rate);
  h.add(std::uint64_t{m.half_duplex_storage ? 1U : 0U});
  for (const storage_link& path : m.storage) {
    h.add(path.read_rate);
    h.add(path.write_rate);
    h.add(std::uint64_t{path.mixes.size()});
    for (const mixed_rate& mix : path.mixes) {
      h.add(mix.read_share);
      h.add(mix.total_rate);
    }
  }
  return h.value();
}

}  // namespace forebay::plan
