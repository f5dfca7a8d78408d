#include <forebay/memory/topology.hpp>

#include <algorithm>
#include <cerrno>
#include <type_traits>

#include <fmt/format.h>
#include <hwloc.h>

#include <forebay/base/contract.hpp>

namespace forebay {
namespace {

struct bitmap_deleter {
  void operator()(hwloc_bitmap_s* b) const noexcept { hwloc_bitmap_free(b); }
};
using bitmap = std::unique_ptr<hwloc_bitmap_s, bitmap_deleter>;

struct topology_deleter {
  void operator()(std::remove_pointer_t<hwloc_topology_t>* t) const noexcept { hwloc_topology_destroy(t); }
};
using topology_handle = std::unique_ptr<std::remove_pointer_t<hwloc_topology_t>, topology_deleter>;

bitmap make_bitmap() {
  bitmap b(hwloc_bitmap_alloc());
  if (!b) {
    throw std::bad_alloc();
  }
  return b;
}

topology_handle load(const std::optional<std::string>& xml) {
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) {
    throw unsupported_error(fmt::format("hwloc can't start: {}", describe_errno(errno)));
  }
  topology_handle handle(raw);
  if (xml && hwloc_topology_set_xmlbuffer(raw, xml->c_str(), static_cast<int>(xml->size() + 1)) != 0) {
    throw usage_error(fmt::format("the topology XML is not understood: {}", describe_errno(errno)));
  }
  if (hwloc_topology_load(raw) != 0) {
    throw unsupported_error(fmt::format("hwloc can't read the machine's topology: {}", describe_errno(errno)));
  }
  return handle;
}

/// What this process may run on: the cpuset that it was given (containers) less what its affinity mask leaves out
/// (taskset), which hwloc keeps apart.
bitmap usable_cpu_set(hwloc_topology_t t) {
  bitmap usable = make_bitmap();
  hwloc_bitmap_copy(usable.get(), hwloc_topology_get_allowed_cpuset(t));
  if (hwloc_topology_is_thissystem(t) != 0) {
    const bitmap mask = make_bitmap();
    if (hwloc_get_cpubind(t, mask.get(), HWLOC_CPUBIND_PROCESS) == 0 ||
        hwloc_get_cpubind(t, mask.get(), HWLOC_CPUBIND_THREAD) == 0) {
      const bitmap both = make_bitmap();
      hwloc_bitmap_and(both.get(), usable.get(), mask.get());
      if (hwloc_bitmap_iszero(both.get()) == 0) {
        hwloc_bitmap_copy(usable.get(), both.get());
      }
    }
  }
  return usable;
}

std::vector<numa_node> read_nodes(hwloc_topology_t t, hwloc_const_bitmap_t usable) {
  std::vector<numa_node> nodes;
  for (hwloc_obj_t o = nullptr; (o = hwloc_get_next_obj_by_type(t, HWLOC_OBJ_NUMANODE, o)) != nullptr;) {
    if (hwloc_bitmap_isset(hwloc_topology_get_allowed_nodeset(t), o->os_index) == 0) {
      continue;
    }
    numa_node node{o->os_index, o->attr->numanode.local_memory, {}};
    for (int cpu = -1; (cpu = hwloc_bitmap_next(o->cpuset, cpu)) != -1;) {
      if (hwloc_bitmap_isset(usable, static_cast<unsigned>(cpu)) != 0) {
        node.cpus.push_back(static_cast<unsigned>(cpu));
      }
    }
    nodes.push_back(std::move(node));
  }
  std::sort(nodes.begin(), nodes.end(), [](const auto& a, const auto& b) { return a.os_index < b.os_index; });
  return nodes;
}

}  // namespace

struct topology::impl {
  explicit impl(const std::optional<std::string>& xml)
      : handle(load(xml)), usable(usable_cpu_set(handle.get())), nodes(read_nodes(handle.get(), usable.get())) {}

  [[nodiscard]] const numa_node* find(unsigned os_index) const {
    const auto at = std::find_if(nodes.begin(), nodes.end(), [&](const auto& n) { return n.os_index == os_index; });
    return at == nodes.end() ? nullptr : &*at;
  }

  /// Why nothing can be bound to that node; empty when it can be tried.
  [[nodiscard]] std::string obstacle(unsigned os_index) const {
    if (hwloc_topology_is_thissystem(handle.get()) == 0) {
      return "the topology is not this machine's: nothing is bound";
    }
    if (find(os_index) == nullptr) {
      return fmt::format("NUMA node {} is not one that this process may use", os_index);
    }
    if (nodes.size() == 1) {
      return fmt::format("there is a single NUMA node ({}): nothing to bind", os_index);
    }
    return {};
  }

  topology_handle handle;
  bitmap usable;
  std::vector<numa_node> nodes;
};

topology::topology(std::optional<std::string> synthetic_xml) : impl_(std::make_unique<impl>(synthetic_xml)) {}
topology::~topology() = default;
topology::topology(topology&&) noexcept = default;
topology& topology::operator=(topology&&) noexcept = default;

const std::vector<numa_node>& topology::nodes() const noexcept { return impl_->nodes; }

unsigned topology::usable_cpus() const noexcept {
  return static_cast<unsigned>(std::max(1, hwloc_bitmap_weight(impl_->usable.get())));
}

unsigned topology::preferred_node() const noexcept {
  const auto most = std::max_element(impl_->nodes.begin(), impl_->nodes.end(),
                                     [](const auto& a, const auto& b) { return a.cpus.size() < b.cpus.size(); });
  return most == impl_->nodes.end() ? 0 : most->os_index;
}

binding_result topology::bind_memory(std::span<std::byte> memory, unsigned node_os_index) const {
  if (std::string obstacle = impl_->obstacle(node_os_index); !obstacle.empty()) {
    return {false, std::move(obstacle)};
  }
  hwloc_topology_t t = impl_->handle.get();
  const bitmap wanted = make_bitmap();
  hwloc_bitmap_only(wanted.get(), node_os_index);
  // Without STRICT the kernel prefers the node and spills to others when it is full, rather than killing the process.
  if (hwloc_set_area_membind(t, memory.data(), memory.size(), wanted.get(), HWLOC_MEMBIND_BIND,
                             HWLOC_MEMBIND_BYNODESET) != 0) {
    return {false, fmt::format("binding {} to NUMA node {} was refused: {}", format_bytes(memory.size()), node_os_index,
                               describe_errno(errno))};
  }
  const bitmap found = make_bitmap();
  hwloc_membind_policy_t policy{};
  if (hwloc_get_area_membind(t, memory.data(), memory.size(), found.get(), &policy, HWLOC_MEMBIND_BYNODESET) != 0) {
    return {false,
            fmt::format("the binding to NUMA node {} can't be read back: {}", node_os_index, describe_errno(errno))};
  }
  if (policy != HWLOC_MEMBIND_BIND || hwloc_bitmap_isequal(found.get(), wanted.get()) == 0) {
    return {false, fmt::format("binding to NUMA node {} was accepted but had no effect", node_os_index)};
  }
  return {true, fmt::format("{} on NUMA node {}", format_bytes(memory.size()), node_os_index)};
}

binding_result topology::bind_this_thread(unsigned node_os_index) const {
  if (std::string obstacle = impl_->obstacle(node_os_index); !obstacle.empty()) {
    return {false, std::move(obstacle)};
  }
  const numa_node& node = *impl_->find(node_os_index);
  if (node.cpus.empty()) {
    return {false, fmt::format("NUMA node {} has no CPU that this process may run on", node_os_index)};
  }
  const bitmap wanted = make_bitmap();
  for (const unsigned cpu : node.cpus) {
    hwloc_bitmap_set(wanted.get(), cpu);
  }
  hwloc_topology_t t = impl_->handle.get();
  if (hwloc_set_cpubind(t, wanted.get(), HWLOC_CPUBIND_THREAD) != 0) {
    return {false,
            fmt::format("binding the thread to NUMA node {} was refused: {}", node_os_index, describe_errno(errno))};
  }
  const bitmap found = make_bitmap();
  if (hwloc_get_cpubind(t, found.get(), HWLOC_CPUBIND_THREAD) != 0 ||
      hwloc_bitmap_isequal(found.get(), wanted.get()) == 0) {
    return {false, fmt::format("binding the thread to NUMA node {} was accepted but had no effect", node_os_index)};
  }
  return {true, fmt::format("thread on the {} CPUs of NUMA node {}", node.cpus.size(), node_os_index)};
}

}  // namespace forebay
