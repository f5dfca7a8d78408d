# Sourced by tests/run.sh and examples/run.sh: installs what is missing on Debian and Ubuntu, or says what to install.
#
#   need COMMAND PACKAGE        PACKAGE is wanted unless COMMAND is there
#   need_dev HEADER PACKAGE     PACKAGE is wanted unless HEADER is there
#   install_missing             installs what the calls before found missing; ends the script where it cannot

missing_packages=()

need() {
  command -v "$1" >/dev/null 2>&1 || missing_packages+=("$2")
}

need_dev() {
  if command -v dpkg-query >/dev/null 2>&1 &&
     dpkg-query -W -f='${Status}' "$2" 2>/dev/null | grep -q 'install ok installed'; then
    return
  fi
  local folder
  for folder in /usr/local/include /usr/include "/usr/include/$(uname -m)-linux-gnu"; do
    if [ -e "$folder/$1" ]; then return; fi
  done
  missing_packages+=("$2")
}

install_missing() {
  [ ${#missing_packages[@]} -eq 0 ] && return
  local command="apt-get install -y --no-install-recommends ${missing_packages[*]}"
  local as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    # Without a terminal, only a sudo that asks nothing helps.
    if command -v sudo >/dev/null 2>&1 && { [ -t 0 ] || sudo -n true 2>/dev/null; }; then
      as_root=(sudo)
    fi
  fi
  if ! command -v apt-get >/dev/null 2>&1; then
    echo "Missing, by their Debian names: ${missing_packages[*]}" >&2
    echo "Install them with this system's package manager and run this script again." >&2
    exit 1
  fi
  if [ "$(id -u)" -ne 0 ] && [ ${#as_root[@]} -eq 0 ]; then
    echo "Missing packages, and neither root nor sudo to install them. Let somebody run" >&2
    echo "  $command" >&2
    exit 1
  fi
  echo "Installing ${missing_packages[*]}"
  if ! { "${as_root[@]}" apt-get update -qq &&
         "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive $command -qq >/dev/null; } </dev/null; then
    echo "That failed. Run" >&2
    echo "  apt-get update && $command" >&2
    echo "and then this script again." >&2
    exit 1
  fi
  missing_packages=()
  hash -r
}

# What every build of the library takes.
need_build_tools() {
  need cmake cmake
  need ninja ninja-build
  need g++ g++
  need pkg-config pkg-config
  need_dev fmt/format.h libfmt-dev
  need_dev oneapi/tbb.h libtbb-dev
  need_dev liburing.h liburing-dev
  need_dev hwloc.h libhwloc-dev
  need_dev xxhash.h libxxhash-dev
  need_dev nlohmann/json.hpp nlohmann-json3-dev
}

# What the example trainer takes beyond that.
need_example_libraries() {
  need_dev CLI/CLI.hpp libcli11-dev
  need_dev dnnl.hpp libdnnl-dev
}

check_cmake_version() {
  local found
  found=$(cmake --version | sed -n 's/^cmake version \([0-9.]*\).*/\1/p')
  if [ "$(printf '%s\n3.25\n' "$found" | sort -V | head -n 1)" != 3.25 ]; then
    echo "cmake $found is too old: 3.25 or newer is needed (Debian 12, Ubuntu 24.04, or cmake.org)." >&2
    exit 1
  fi
}
