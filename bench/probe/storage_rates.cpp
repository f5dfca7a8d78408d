#include <array>
#include <vector>

#include "../store/measure.hpp"
#include "../store/settings.hpp"
#include "../store/statistics.hpp"
#include "../store/store_side.hpp"
#include "../store/workload.hpp"
#include "rates.hpp"

namespace forebay::probe {
namespace {

using namespace store_bench;

constexpr byte_count tensor = 16_MiB;
constexpr std::array<double, 5> shares{0.0, 1.0, 0.25, 0.5, 0.75};  // of reads

workload pass_of(double share, byte_count total) {
  return {share == 0.0 ? mode::overwrite : (share == 1.0 ? mode::read : mode::mix), total, tensor, share};
}

}  // namespace

plan::storage_link measure_storage(const std::filesystem::path& directory, std::span<std::byte> memory,
                                   const effort& e) {
  settings s;
  s.paths = {directory};
  s.checksums = false;
  store_side store(s, memory);
  const byte_count total = align_down(memory.size(), tensor);
  store.lay_out(total, tensor);
  const auto pass = [&](double share, std::uint64_t seed) {
    const std::vector<piece> pieces = make_pass(pass_of(share, total), store.granule(), seed);
    const cost took = measure(total, [&] { store.run(pieces); });
    return static_cast<double>(took.bytes) / took.seconds;
  };
  static_cast<void>(pass(0.0, 0));  // what is never written can't be read, nor overwritten
  std::array<std::vector<double>, shares.size()> rates;
  for (unsigned round = 0; round < e.rounds; ++round) {
    for (std::size_t i = 0; i < shares.size(); ++i) {
      rates[i].push_back(pass(shares[i], round));
    }
  }
  plan::storage_link link{median(rates[1]), median(rates[0])};
  for (std::size_t i = 2; i < shares.size(); ++i) {
    link.mixes.push_back({shares[i], median(rates[i])});
  }
  return link;
}

}  // namespace forebay::probe
