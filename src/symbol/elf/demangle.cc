// SPDX-License-Identifier: Apache-2.0
// Names as the programmer wrote them, through libiberty's demanglers. A short mangled name can
// stand for one of astronomic length (every substitution may double it), so output goes to a fixed
// buffer, and the demangler is left by longjmp when that is full: its callback form keeps nothing
// on the heap that this could lose. A name too long to be shown comes back mangled.
#define HAVE_DECL_BASENAME 1  // or libiberty.h declares one that contradicts <string.h>
#include <libiberty/demangle.h>

#include <array>
#include <csetjmp>
#include <cstring>
#include <memory>

#include "symbol/elf/demangle.h"

namespace pkprof {
namespace {

constexpr size_t max_mangled = 4096;
constexpr size_t max_demangled = 16384;
// libiberty takes a longer name only without its guard against deep recursion. max_mangled bounds
// the depth then: the worst name of that length takes less than 1 MiB of stack.
constexpr size_t max_guarded = 1024;

struct Output {
  std::array<char, max_demangled> text;
  size_t size = 0;
  std::jmp_buf full;
};

void append(const char* piece, size_t size, void* opaque) {
  auto& out = *static_cast<Output*>(opaque);
  if (size == 0) return;  // and `piece` may be null
  if (size > out.text.size() - out.size) std::longjmp(out.full, 1);
  std::memcpy(out.text.data() + out.size, piece, size);
  out.size += size;
}

using Demangler = int (*)(const char*, int, demangle_callbackref, void*);

// No object with a destructor lives between the setjmp and the longjmp.
bool run(Demangler demangler, const char* mangled, int options, Output& out) {
  out.size = 0;
  if (setjmp(out.full) != 0) return false;
  return demangler(mangled, options, append, &out) != 0;
}

}  // namespace

std::string demangle(std::string_view mangled) {
  std::string name(mangled);
  const bool cxx = name.starts_with("_Z") || name.starts_with("_GLOBAL__");
  const bool rust = name.starts_with("_R") || name.starts_with("_ZN");
  if ((!cxx && !rust) || name.size() > max_mangled) return name;
  if (name.find('\0') != std::string::npos) return name;

  auto out = std::make_unique_for_overwrite<Output>();
  const char* text = name.c_str();
  int options = DMGL_PARAMS | DMGL_ANSI;
  if (name.size() > max_guarded) options |= DMGL_NO_RECURSE_LIMIT;
  const bool done = (rust && run(rust_demangle_callback, text, DMGL_RUST, *out)) ||
                    (cxx && run(cplus_demangle_v3_callback, text, options, *out));
  if (!done || out->size == 0) return name;
  return {out->text.data(), out->size};
}

}  // namespace pkprof
