# What the library itself is made with. Tests, benches and examples look for the rest where they need it.
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(TBB REQUIRED)
find_package(Liburing 2.3 REQUIRED)
find_package(Hwloc REQUIRED)
find_package(Xxhash REQUIRED)
include(forebay_cuda)
