#include "layering.hpp"

#include <unistd.h>

#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace {

namespace fs = std::filesystem;
using layering::check_quoted_example;
using layering::check_tree;
using layering::findings;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// A small tree of its own for each test, which is right until a test plants a breach in it.
class planted_tree : public testing::Test {
 protected:
  planted_tree() : root_(fs::temp_directory_path() / ("forebay layering " + std::to_string(::getpid()))) {
    fs::remove_all(root_);
    write("README.md", "top\n");
    write("src/README.md", "src\n");
    write("include/forebay/base/README.md", "base\n");
    write("include/forebay/engine/README.md", "engine\n");
    write("include/forebay/base/bytes.hpp", "#pragma once\n#include <cstdint>\n");
    write("include/forebay/engine/engine.hpp", "#pragma once\n#include <forebay/base/bytes.hpp>\n");
    write("src/base/bytes.cpp", "#include <forebay/base/bytes.hpp>\n#include <fmt/format.h>\n");
    write("tests/README.md", "tests\n");
    write("tests/base/bytes_test.cpp", "#include <forebay/base/bytes.hpp>\n#include <gtest/gtest.h>\n");
  }
  planted_tree(const planted_tree&) = delete;
  planted_tree& operator=(const planted_tree&) = delete;
  ~planted_tree() override { fs::remove_all(root_); }

  void write(const std::string& file, const std::string& text) const {
    fs::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text;
  }

  const fs::path& root() const { return root_; }

 private:
  fs::path root_;
};

TEST(layering, holds_in_this_repository) {
  const findings found = check_tree(FOREBAY_SOURCE_DIR);
  for (const std::string& remark : found.remarks) {
    std::printf("remark: %s\n", remark.c_str());
  }
  EXPECT_THAT(found.breaches, IsEmpty());
}

TEST(layering, readme_quotes_the_quickstart) {
  const fs::path root = FOREBAY_SOURCE_DIR;
  EXPECT_THAT(check_quoted_example(root / "README.md", root / "examples" / "quickstart.cpp"), IsEmpty());
}

TEST_F(planted_tree, is_right_as_it_stands) { EXPECT_THAT(check_tree(root()).breaches, IsEmpty()); }

TEST_F(planted_tree, a_lower_row_may_not_include_a_higher_one) {
  write("src/base/bytes.cpp", "#include <forebay/base/bytes.hpp>\n#  include <forebay/engine/engine.hpp>\n");
  EXPECT_THAT(check_tree(root()).breaches, ElementsAre(HasSubstr("src/base/bytes.cpp:2: module 'base' (row 0)")));
}

TEST_F(planted_tree, modules_of_one_row_may_not_include_each_other) {
  write("src/plan/order.cpp", "#include <forebay/telemetry/timeline.hpp>\n");
  EXPECT_THAT(check_tree(root()).breaches, ElementsAre(HasSubstr("'plan' (row 1) includes <forebay/telemetry/")));
}

TEST_F(planted_tree, a_module_without_a_row_is_a_breach) {
  write("src/magic/wand.cpp", "#include <forebay/base/bytes.hpp>\n");
  EXPECT_THAT(check_tree(root()).breaches, ElementsAre(HasSubstr("module 'magic' has no row")));
}

TEST_F(planted_tree, a_public_header_may_not_include_third_parties) {
  write("include/forebay/base/bytes.hpp", "#pragma once\n#include <sys/uio.h>\n#include <fmt/format.h>\n");
  EXPECT_THAT(check_tree(root()).breaches, ElementsAre(HasSubstr("bytes.hpp:3: a public header includes the third")));
}

TEST_F(planted_tree, cuda_alone_may_include_its_runtime) {
  write("include/forebay/cuda.hpp", "#pragma once\n#include <cuda_runtime_api.h>\n");
  EXPECT_THAT(check_tree(root()).breaches, IsEmpty());
  write("include/forebay/base/bytes.hpp", "#pragma once\n#include <cuda_runtime_api.h>\n");
  EXPECT_THAT(check_tree(root()).breaches, ElementsAre(HasSubstr("<cuda_runtime_api.h>")));
}

TEST_F(planted_tree, private_headers_stay_private) {
  write("src/base/detail/table.hpp", "#pragma once\n");
  write("src/base/bytes.cpp", "#include \"detail/table.hpp\"\n#include \"base/detail/table.hpp\"\n");
  EXPECT_THAT(check_tree(root()).breaches, IsEmpty());
  write("src/engine/engine.cpp", "#include \"base/detail/table.hpp\"\n");
  write("tests/base/bytes_test.cpp", "#include \"../../src/base/detail/table.hpp\"\n");
  EXPECT_THAT(check_tree(root()).breaches, ElementsAre(HasSubstr("src/engine/engine.cpp:1: module 'engine' includes"),
                                                       HasSubstr("tests/base/bytes_test.cpp:1: includes")));
}

TEST_F(planted_tree, cuda_is_a_part_of_the_devices) {
  write("include/forebay/device/README.md", "device\n");
  write("include/forebay/cuda.hpp", "#pragma once\n");
  write("src/device/detail/table.hpp", "#pragma once\n");
  write("src/cuda/device.cpp", "#include <forebay/cuda.hpp>\n#include \"device/detail/table.hpp\"\n");
  EXPECT_THAT(check_tree(root()).breaches, IsEmpty());
  write("src/cuda/device.cpp", "#include <forebay/engine/engine.hpp>\n");
  EXPECT_THAT(check_tree(root()).breaches, ElementsAre(HasSubstr("module 'device' (row 2)")));
}

TEST_F(planted_tree, users_may_not_include_details) {
  write("include/forebay/base/detail/table.hpp", "#pragma once\n");
  write("bench/README.md", "bench\n");
  write("bench/base/table_bench.cpp", "#include <forebay/base/detail/table.hpp>\n");
  write("include/forebay/engine/engine.hpp", "#pragma once\n#include <forebay/base/detail/table.hpp>\n");
  EXPECT_THAT(check_tree(root()).breaches,
              ElementsAre(HasSubstr("bench/base/table_bench.cpp:1: includes"), HasSubstr("a detail of another")));
}

TEST_F(planted_tree, headers_are_guarded_and_folders_explained) {
  write("include/forebay/base/bytes.hpp", "#include <cstdint>\n");
  write("include/forebay/plan/order.hpp", "#pragma once\n");
  EXPECT_THAT(check_tree(root()).breaches, ElementsAre(HasSubstr("bytes.hpp:1: no #pragma once"),
                                                       HasSubstr("include/forebay/plan/README.md: missing")));
}

TEST_F(planted_tree, long_files_are_remarked_on) {
  std::string text = "#pragma once\n";
  for (int i = 0; i < 300; ++i) {
    text += "\n";
  }
  write("include/forebay/base/bytes.hpp", text);
  EXPECT_THAT(check_tree(root()).breaches, IsEmpty());
  EXPECT_THAT(check_tree(root()).remarks, ElementsAre(HasSubstr("bytes.hpp:301: more than 300 lines")));
}

TEST_F(planted_tree, a_readme_that_differs_from_its_example_is_found) {
  write("examples/a.cpp", "int main() {}\n");
  write("examples/README.md", "An example:\n```cpp\nint main() {}\n```\n");
  EXPECT_THAT(check_quoted_example(root() / "examples" / "README.md", root() / "examples" / "a.cpp"), IsEmpty());
  write("examples/a.cpp", "int main() { return 0; }\n");
  EXPECT_THAT(check_quoted_example(root() / "examples" / "README.md", root() / "examples" / "a.cpp"),
              ElementsAre(HasSubstr("is not the text of")));
}

}  // namespace
