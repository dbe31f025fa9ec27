# How everything here is compiled, and the three functions that folders use: tally_library, tally_program, tally_test.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_RUNTIME_OUTPUT_DIRECTORY)
  set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
endif()

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE RelWithDebInfo)
endif()

# Headers that take seconds to read, gRPC's and GoogleTest's, are read once. Off by default, so that somewhere (clang-tidy's
# tree, a developer's own) a file that forgets an include does not compile.
option(TALLY_PCH "Precompile the headers of gRPC and GoogleTest" OFF)

find_program(TALLY_CCACHE ccache)
if(TALLY_CCACHE AND TALLY_PCH)
  # ccache asks for these before it trusts itself with precompiled headers.
  set(CMAKE_CXX_COMPILER_LAUNCHER
    ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime ${TALLY_CCACHE})
elseif(TALLY_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${TALLY_CCACHE})
endif()
find_program(TALLY_MOLD mold)
if(TALLY_MOLD)
  add_link_options(-fuse-ld=mold)
endif()

set(TALLY_SANITIZE "" CACHE STRING "Sanitizers for everything built here: '', 'address,undefined' or 'thread'")
option(TALLY_FUZZ "Build libFuzzer's programs, target `fuzzers`; needs clang" OFF)
if(TALLY_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES Clang)
    message(FATAL_ERROR "TALLY_FUZZ needs -DCMAKE_C_COMPILER=clang-14 -DCMAKE_CXX_COMPILER=clang++-14")
  endif()
  set(TALLY_SANITIZE "address,undefined")
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()
add_library(tally_flags INTERFACE)
# -Wrestrict of g++ 12 sees overlaps in optimized std::string code where there are none (GCC bug 105651).
target_compile_options(tally_flags INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion
  $<$<NOT:$<BOOL:${TALLY_FUZZ}>>:-Werror>
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>)
# -pthread everywhere, or nowhere: a precompiled header serves only those who agree on it. One that does not fit costs
# time and is no error.
target_compile_options(tally_flags INTERFACE -pthread $<$<BOOL:${TALLY_PCH}>:-Wno-error=invalid-pch>)
target_include_directories(tally_flags INTERFACE ${CMAKE_SOURCE_DIR})
if(TALLY_SANITIZE)
  add_compile_options(-fsanitize=${TALLY_SANITIZE} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${TALLY_SANITIZE})
  if(TALLY_SANITIZE MATCHES undefined)
    # A null pointer that is used ends the program under AddressSanitizer anyway; UBSan's own checks for it, one at every
    # access, cost a quarter of all compile time.
    add_compile_options(-fno-sanitize-recover=undefined -fno-sanitize=null,object-size)
  endif()
endif()
# Checked containers wherever asserts are on. They change no layout, so Debian's libraries can be linked all the same.
add_compile_definitions($<$<CONFIG:Debug>:_GLIBCXX_ASSERTIONS>)

# What every test sees. The sanitizers' options stand here and nowhere else: the first report ends the program, and a
# child that was forked but not yet executed is not searched for leaks.
set(TALLY_TEST_ENVIRONMENT
  "TALLY_BIN=${CMAKE_RUNTIME_OUTPUT_DIRECTORY}"   # where programs under test lie
  "TALLY_PYTHON=${CMAKE_BINARY_DIR}/python"       # where generated code for Python clients lies
  "ASAN_OPTIONS=halt_on_error=1:abort_on_error=0:detect_stack_use_after_return=1:strict_init_order=1"
  "LSAN_OPTIONS=suppressions=${CMAKE_SOURCE_DIR}/cmake/lsan.supp:print_suppressions=0"
  "UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1"
  "TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1")

# Programs to run (./dev build), those of bench/, and tests that are worth a run under ThreadSanitizer.
add_custom_target(programs)
add_custom_target(all_benchmarks)
add_custom_target(tsan_programs)
set(TALLY_TSAN_TREE "" CACHE PATH "Build tree with TALLY_SANITIZE=thread whose programs are tests of this tree too")

find_package(Threads REQUIRED)
find_package(Protobuf REQUIRED)
find_package(gRPC CONFIG REQUIRED)
find_package(absl CONFIG REQUIRED)
find_package(OpenSSL REQUIRED)
find_package(GTest REQUIRED)
find_package(rapidcheck CONFIG REQUIRED)
find_package(prometheus-cpp CONFIG REQUIRED)
find_package(CLI11 REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(spdlog REQUIRED)
# Headers only: Asio and Beast.
find_package(Boost 1.81 REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(sodium REQUIRED IMPORTED_TARGET libsodium)
pkg_check_modules(pqxx REQUIRED IMPORTED_TARGET libpqxx)
pkg_check_modules(pq REQUIRED IMPORTED_TARGET libpq)
# Not named re2: the cached re2_FOUND would make gRPC's own search believe that its target re2::re2 stands already.
pkg_check_modules(tally_re2 REQUIRED IMPORTED_TARGET re2)
add_library(PkgConfig::re2 ALIAS PkgConfig::tally_re2)
pkg_check_modules(tomlplusplus REQUIRED IMPORTED_TARGET tomlplusplus)

# tally_library(json parse.cc canonical.cc DEPS tally::money absl::status)   makes tally_json, alias tally::json
function(tally_library name)
  cmake_parse_arguments(ARG "" "" "DEPS" ${ARGN})
  add_library(tally_${name} STATIC ${ARG_UNPARSED_ARGUMENTS})
  add_library(tally::${name} ALIAS tally_${name})
  target_link_libraries(tally_${name} PRIVATE tally_flags PUBLIC ${ARG_DEPS})
  target_include_directories(tally_${name} PUBLIC ${CMAKE_SOURCE_DIR})
  set_property(GLOBAL APPEND PROPERTY TALLY_CODE tally_${name})
endfunction()

# tally_program(tallyd main.cc DEPS tally::rpc)   lands in build/bin
function(tally_program name)
  cmake_parse_arguments(ARG "" "" "DEPS" ${ARGN})
  add_executable(${name} ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE tally_flags ${ARG_DEPS})
  add_dependencies(programs ${name})
  set_property(GLOBAL APPEND PROPERTY TALLY_CODE ${name})
endfunction()

# tally_benchmark(lane_bench main.cc DEPS tally::lane)   a program of bench/: built by ./dev bench, lands beside programs
function(tally_benchmark name)
  cmake_parse_arguments(ARG "" "" "DEPS" ${ARGN})
  add_executable(${name} ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE tally_flags ${ARG_DEPS})
  add_dependencies(all_benchmarks ${name})
endfunction()

# tally_test(json_test json/parse_test.cc DEPS tally::json LABELS fast TIMEOUT 60)
# One program per subject, with GoogleTest's main; run by ctest under its own name, in the root of the repository.
# LABELS tsan: the program is also built with ThreadSanitizer and run as NAME.tsan (no gRPC and no libpqxx in it: neither
# is instrumented, and both would be reported). TIMEOUT is in seconds, and bounds a hang: a busy machine takes several times as long.
# Under sanitizers a test's own code is compiled without optimization, which halves the time that takes; files named
# *property* or *model*, which compute much, are optimized.
function(tally_test name)
  cmake_parse_arguments(ARG "" "TIMEOUT" "DEPS;LABELS" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 600)
  endif()
  add_executable(${name} ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE tally_flags ${ARG_DEPS} GTest::gmock GTest::gtest_main)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/test_bin)
  if(TALLY_SANITIZE)
    foreach(source ${ARG_UNPARSED_ARGUMENTS})
      if(source MATCHES "property|model")
        set_source_files_properties(${source} PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
      else()
        set_property(SOURCE ${source} APPEND PROPERTY COMPILE_OPTIONS -O0)
      endif()
    endforeach()
  endif()
  set_property(GLOBAL APPEND PROPERTY TALLY_TESTS ${name})
  add_test(NAME ${name} COMMAND ${name} WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  set(tests ${name})
  if("tsan" IN_LIST ARG_LABELS)
    add_dependencies(tsan_programs ${name})
    if(TALLY_TSAN_TREE)
      add_test(NAME ${name}.tsan COMMAND ${TALLY_TSAN_TREE}/test_bin/${name} WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
      list(APPEND tests ${name}.tsan)
    endif()
  endif()
  set_tests_properties(${tests} PROPERTIES TIMEOUT ${ARG_TIMEOUT} LABELS "${ARG_LABELS}"
    ENVIRONMENT "${TALLY_TEST_ENVIRONMENT}")
endfunction()

# True in `out` if `target` links gRPC, itself or through what it links.
function(tally_links_grpc out target)
  set(${out} FALSE PARENT_SCOPE)
  if(target MATCHES "^gRPC::")
    set(${out} TRUE PARENT_SCOPE)
    return()
  endif()
  if(NOT target MATCHES "^tally" OR NOT TARGET ${target})
    return()
  endif()
  get_target_property(real ${target} ALIASED_TARGET)
  if(NOT real)
    set(real ${target})
  endif()
  get_property(known GLOBAL PROPERTY TALLY_LINKS_GRPC_${real})
  if(NOT DEFINED known OR known STREQUAL "")
    set(known FALSE)
    set(linked)
    get_target_property(type ${real} TYPE)
    if(NOT type STREQUAL INTERFACE_LIBRARY)
      get_target_property(linked ${real} LINK_LIBRARIES)
    endif()
    foreach(item ${linked})
      tally_links_grpc(found "${item}")
      if(found)
        set(known TRUE)
        break()
      endif()
    endforeach()
    set_property(GLOBAL PROPERTY TALLY_LINKS_GRPC_${real} ${known})
  endif()
  set(${out} ${known} PARENT_SCOPE)
endfunction()

# Called when all targets are known. Each precompiled header is made once, by a library of its own, with the flags of
# those that use it.
function(tally_precompile)
  file(WRITE ${CMAKE_BINARY_DIR}/pch/empty.cc "")
  get_property(tests GLOBAL PROPERTY TALLY_TESTS)
  if(tests)
    add_library(tally_pch_test OBJECT EXCLUDE_FROM_ALL ${CMAKE_BINARY_DIR}/pch/empty.cc)
    target_link_libraries(tally_pch_test PRIVATE tally_flags GTest::gmock GTest::gtest_main)
    if(TALLY_SANITIZE)
      target_compile_options(tally_pch_test PRIVATE -O0)
    endif()
    target_precompile_headers(tally_pch_test PRIVATE <gmock/gmock.h> <gtest/gtest.h> <absl/status/statusor.h>
      <absl/strings/str_cat.h> <map> <optional> <string> <vector>)
    foreach(test ${tests})
      target_precompile_headers(${test} REUSE_FROM tally_pch_test)
    endforeach()
  endif()
  get_property(code GLOBAL PROPERTY TALLY_CODE)
  set(heavy)
  foreach(target ${code})
    tally_links_grpc(found ${target})
    if(found)
      list(APPEND heavy ${target})
    endif()
  endforeach()
  if(heavy)
    add_library(tally_pch_grpc OBJECT EXCLUDE_FROM_ALL ${CMAKE_BINARY_DIR}/pch/empty.cc)
    target_link_libraries(tally_pch_grpc PRIVATE tally_flags gRPC::grpc++ protobuf::libprotobuf)
    target_precompile_headers(tally_pch_grpc PRIVATE <grpcpp/grpcpp.h> <google/protobuf/message.h>
      <google/protobuf/timestamp.pb.h> <absl/status/statusor.h> <absl/strings/str_cat.h> <map> <optional> <string> <vector>)
    foreach(target ${heavy})
      target_precompile_headers(${target} REUSE_FROM tally_pch_grpc)
    endforeach()
  endif()
endfunction()
if(TALLY_PCH)
  cmake_language(DEFER DIRECTORY ${CMAKE_SOURCE_DIR} CALL tally_precompile)
endif()
