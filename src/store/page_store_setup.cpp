// How a store opens its paths and starts its threads.
#include <algorithm>
#include <thread>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <forebay/base/contract.hpp>
#include <forebay/base/error.hpp>

#include "store/page_store_impl.hpp"

namespace forebay {
namespace {

constexpr byte_count least_unit = 4096;           // whole pages and whole sectors of every usual drive
constexpr byte_count largest_memory_unit = 4096;  // what callers promise of their memory
constexpr unsigned cores_per_worker = 4;
constexpr unsigned most_workers = 4;

/// What each path may take: its configured capacity, or its share of what is free on its file system.
std::vector<byte_count> capacities(const std::vector<storage_path>& paths, const std::vector<io::direct_file>& files) {
  std::vector<dev_t> devices;
  for (const io::direct_file& file : files) {
    struct stat status {};
    devices.push_back(::fstat(file.descriptor(), &status) == 0 ? status.st_dev : dev_t{});
  }
  std::vector<byte_count> result;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    byte_count capacity = paths[i].capacity;
    struct statvfs space {};
    if (capacity == 0 && ::fstatvfs(files[i].descriptor(), &space) == 0) {
      byte_count open_ended = 0;
      for (std::size_t k = 0; k < paths.size(); ++k) {
        open_ended += devices[k] == devices[i] && paths[k].capacity == 0 ? 1U : 0U;
      }
      capacity = byte_count{space.f_bavail} * space.f_frsize / open_ended;
    }
    result.push_back(capacity);
  }
  return result;
}

}  // namespace

page_store::impl::impl(page_store_options wanted, telemetry::timeline* line)
    : options(std::move(wanted)), timeline(line) {
  FOREBAY_EXPECTS(!options.paths.empty(), "the storage tier has at least one path");
  FOREBAY_EXPECTS(is_power_of_two(options.chunk) && options.chunk >= least_unit,
                  "the chunk is a power of two of at least 4 KiB");
  FOREBAY_EXPECTS(options.least_alignment == 0 || is_power_of_two(options.least_alignment),
                  "the least alignment is a power of two");
  open_paths();
  start_services();
}

page_store::impl::~impl() {
  inside.close();
  workers.reset();
  backend.reset();
  for (const store_detail::path_space& path : table->paths()) {
    ::unlink(path.file.path().c_str());
  }
}

void page_store::impl::open_paths() {
  std::vector<io::direct_file> files;
  try {
    for (const storage_path& path : options.paths) {
      claims.emplace_back(path.directory);
      degradations.insert(degradations.end(), claims.back().degradations().begin(), claims.back().degradations().end());
      files.push_back(io::direct_file::create(claims.back().fresh_file_name(), options.direct));
    }
    const byte_count unit = common_alignment(files);
    const std::vector<byte_count> sizes = capacities(options.paths, files);
    std::vector<store_detail::path_space> spaces;
    for (std::size_t i = 0; i < files.size(); ++i) {
      spaces.push_back({std::move(files[i]), extent_allocator(sizes[i], unit)});
    }
    std::vector<double> weights;
    for (const storage_path& path : options.paths) {
      weights.push_back(path.weight);
      meters.emplace_back();
    }
    table = std::make_unique<store_detail::page_table>(std::move(spaces), options.chunk, unit, std::move(weights));
  } catch (...) {
    for (const io::direct_file& file : files) {
      ::unlink(file.path().c_str());
    }
    throw;
  }
}

/// The unit of all paths, after files that ask for more than callers can give are opened again without O_DIRECT.
byte_count page_store::impl::common_alignment(std::vector<io::direct_file>& files) {
  byte_count unit = std::max(least_unit, options.least_alignment);
  for (io::direct_file& file : files) {
    const io::geometry& layout = file.layout();
    if (layout.direct && (layout.memory_alignment > largest_memory_unit || layout.offset_alignment > options.chunk)) {
      degradations.push_back(
          fmt::format("{}: direct transfers need memory at multiples of {} and offsets at multiples "
                      "of {}; buffered instead",
                      file.path().string(), layout.memory_alignment, layout.offset_alignment));
      const std::filesystem::path path = file.path();
      file = io::direct_file::create(path, false);
    } else if (layout.direct) {
      unit = std::max(unit, layout.offset_alignment);
    } else if (options.direct) {
      degradations.push_back(layout.degradation);
    }
    if (!file.layout().direct) {
      ::posix_fadvise(file.descriptor(), 0, 0, POSIX_FADV_RANDOM);  // read-ahead would fill the cache
    }
  }
  FOREBAY_EXPECTS(unit <= options.chunk, "the chunk is at least the alignment of the files");
  return unit;
}

void page_store::impl::start_services() {
  pacer = std::make_unique<store_detail::link_pacer>(options.io.faults);
  std::vector<int> descriptors;
  for (std::size_t i = 0; i < options.paths.size(); ++i) {
    const storage_path& path = options.paths[i];
    descriptors.push_back(table->paths()[i].file.descriptor());
    pacer->limit(descriptors.back(), path.read_bytes_per_second, path.write_bytes_per_second);
    if (timeline != nullptr) {
      read_lanes.push_back(timeline->lane(fmt::format("storage {} read", i)));
      write_lanes.push_back(timeline->lane(fmt::format("storage {} write", i)));
    }
  }
  io::backend_options io_options = options.io;
  if (pacer->limits_anything()) {
    io_options.faults = pacer.get();
  }
  try {
    backend = io::make_backend(io_options);
    backend->register_files(descriptors);
    tuning.depth = io_options.depth != 0 ? io_options.depth : io::usual_depth;
    tuning.merge = io_options.merge != 0 ? io_options.merge : io::usual_merge;
    tuning.paths.resize(descriptors.size());
    const unsigned count = std::clamp(std::thread::hardware_concurrency() / cores_per_worker, 1U, most_workers);
    workers = std::make_unique<store_detail::transfer_workers>(count, [this](page_transfer& t) { work(t); });
  } catch (...) {
    for (const store_detail::path_space& path : table->paths()) {
      ::unlink(path.file.path().c_str());
    }
    throw;
  }
}

}  // namespace forebay
