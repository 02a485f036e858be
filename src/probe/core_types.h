// SPDX-License-Identifier: Apache-2.0
// The types of this kernel that the kernel side names, as a file of their own.
//
// The kernel side is fitted to the kernel at hand by its types (CO-RE). For each type that it names
// libbpf goes through all of the kernel's, some hundred thousand: a good part of the time to load.
// One pass over them finds all that are named, and libbpf gets no others to search.
#pragma once

#include <string>

#include "base/fd.h"

struct btf;

namespace pkprof {

class CoreTypes {
 public:
  // A file without anything in it yet, since libbpf asks for its name first.
  CoreTypes();

  // The name to open it by; "" where it cannot be had (a process with capabilities of its file and
  // no root may not open its own files in /proc).
  [[nodiscard]] const std::string& path() const { return path_; }

  // Writes those of the kernel's types, or of its modules' where the kernel has none, that have the
  // name of a type in `object` or of a flavour of it (x for x___y), with all that they contain.
  // What pointers point to is left out: nothing is found through it. Returns false if it cannot.
  [[nodiscard]] bool write(const btf* object, const btf* kernel);

 private:
  Fd file_;
  std::string path_;
};

}  // namespace pkprof
