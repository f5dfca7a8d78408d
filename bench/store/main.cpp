// The storage tier beside a bare io_uring on the same drive in the same run: see bench/README.md.
#include <cstdio>
#include <exception>
#include <map>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include <forebay/base/error.hpp>
#include <forebay/memory/host_arena.hpp>

#include "fio.hpp"
#include "measure.hpp"
#include "pattern.hpp"
#include "reference.hpp"
#include "report.hpp"
#include "settings.hpp"
#include "store_side.hpp"
#include "workload.hpp"

namespace forebay::store_bench {
namespace {

/// The store's part of a pass; what `--verify` does stands outside what is measured.
cost run_store(store_side& store, const workload& w, std::uint64_t seed, pattern* verified) {
  const std::vector<piece> pieces = make_pass(w, store.granule(), seed);
  if (verified != nullptr) {
    verified->prepare(pieces);
  }
  const cost took = measure(w.total, [&] { store.run(pieces); });
  if (verified != nullptr) {
    verified->check(pieces);
  }
  return took;
}

void measure_size(const settings& s, byte_count tensor, store_side& store, reference& ring, std::span<std::byte> memory,
                  report& out) {
  const byte_count total = s.size / tensor * tensor;
  store.lay_out(total, tensor);
  std::optional<pattern> contents;
  if (s.verify) {
    contents.emplace(memory, total, tensor);
  }
  pattern* const verified = contents ? &*contents : nullptr;
  // Every byte is written once and read once before it counts: what is measured is the steady state.
  static_cast<void>(run_store(store, {mode::overwrite, total, tensor, s.read_share}, 0, verified));
  static_cast<void>(run_store(store, {mode::read, total, tensor, s.read_share}, 0, verified));
  for (unsigned round = 0; round < s.rounds; ++round) {
    for (const mode m : all_modes) {
      pair p{{m, total, tensor, s.read_share}, round, (round + static_cast<unsigned>(m)) % 2 == 0, {}, {}};
      const std::uint64_t seed = round * 3 + static_cast<unsigned>(m);
      for (const bool store_now : {p.store_first, !p.store_first}) {
        (store_now ? p.store : p.reference) =
            store_now ? run_store(store, p.what, seed, verified) : ring.run(p.what, seed);
      }
      out.add(p);
    }
  }
  for (const mode m : all_modes) {
    out.conclude(m, tensor);
  }
}

/// fio in the store's place, without tensors: the drive's view of another program.
void measure_fio(const settings& s, reference& ring, report& out) {
  fio other(s);
  std::map<mode, std::vector<cost>> of_fio;
  std::map<mode, std::vector<cost>> of_ring;
  for (unsigned round = 0; round < s.rounds; ++round) {
    for (const mode m : all_modes) {
      for (const bool fio_now : {round % 2 == 0, round % 2 != 0}) {
        (fio_now ? of_fio : of_ring)[m].push_back(
            fio_now ? other.run(m, ring.shape(m)) : ring.run({m, s.size, ring.shape(m).block, s.read_share}, round));
      }
    }
  }
  for (const mode m : all_modes) {
    out.add_other("fio", m, of_fio[m], of_ring[m]);
  }
}

int run(int argc, char** argv) {
  const settings s = parse(argc, argv);
  host_arena arena(s.size);
  const std::span<std::byte> memory = arena.memory().first(s.size);
  std::fill(memory.begin(), memory.end(), std::byte{1});
  reference ring(s, memory);
  ring.tune();
  store_side store(s, memory);
  circumstances c{store.backend(), store.degradations(), arena.huge_bytes_resident(), ring.direct()};
  c.degradations.insert(c.degradations.end(), arena.degradations().begin(), arena.degradations().end());
  report out(s, c, ring);
  for (const byte_count tensor : s.tensor_sizes) {
    measure_size(s, tensor, store, ring, memory, out);
  }
  if (s.fio) {
    measure_fio(s, ring, out);
  }
  out.finish();
  return 0;
}

}  // namespace
}  // namespace forebay::store_bench

int main(int argc, char** argv) {
  try {
    return forebay::store_bench::run(argc, argv);
  } catch (const std::exception& e) {
    fmt::print(stderr, "bench_store: {}\n", e.what());
    return 1;
  }
}
