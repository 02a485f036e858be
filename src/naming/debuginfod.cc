// SPDX-License-Identifier: Apache-2.0
#include "naming/debuginfod.h"

#include <dlfcn.h>

#include <cstdlib>
#include <string_view>
#include <type_traits>
#include <utility>

namespace pkprof {
namespace {

// As elfutils' debuginfod.h has it.
struct debuginfod_client;
using ProgressFn = int (*)(debuginfod_client*, long, long);

struct Library {
  debuginfod_client* (*begin)() = nullptr;
  void (*end)(debuginfod_client*) = nullptr;
  void (*set_user_data)(debuginfod_client*, void*) = nullptr;
  void* (*user_data)(debuginfod_client*) = nullptr;
  void (*set_progress)(debuginfod_client*, ProgressFn) = nullptr;
  int (*find_debuginfo)(debuginfod_client*, const unsigned char*, int, char**) = nullptr;
};

Result<Library> load() {
  void* handle = ::dlopen("libdebuginfod.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!handle) return fail("libdebuginfod.so.1 is not to be had (Debian: libdebuginfod1)");
  Library library;
  bool all = true;
  const auto find = [&](auto& function, const char* name) {
    void* const found = ::dlsym(handle, name);
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(found);
    all = all && found;
  };
  find(library.begin, "debuginfod_begin");
  find(library.end, "debuginfod_end");
  find(library.set_user_data, "debuginfod_set_user_data");
  find(library.user_data, "debuginfod_get_user_data");
  find(library.set_progress, "debuginfod_set_progressfn");
  find(library.find_debuginfo, "debuginfod_find_debuginfo");
  if (!all) return fail("libdebuginfod.so.1 is too old");
  return library;
}

}  // namespace

struct Debuginfod::Client {
  Client(const Library& with, Progress told) : library(with), progress(std::move(told)) {
    client = library.begin();
    if (client) library.set_user_data(client, this);
    if (client) library.set_progress(client, tell);
  }
  ~Client() {
    if (client) library.end(client);
  }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  static const Library* in_use;
  static int tell(debuginfod_client* of, long got, long all) {
    const auto* self = static_cast<Client*>(in_use->user_data(of));
    const auto bytes = [](long n) { return n > 0 ? static_cast<uint64_t>(n) : 0; };
    return self->progress(bytes(got), bytes(all)) ? 0 : 1;
  }

  Library library;
  Progress progress;
  debuginfod_client* client = nullptr;
};

const Library* Debuginfod::Client::in_use = nullptr;

bool Debuginfod::is_wanted() {
  const char* urls = std::getenv("DEBUGINFOD_URLS");
  return urls && std::string_view(urls).find_first_not_of(' ') != std::string_view::npos;
}

Result<Debuginfod> Debuginfod::open(Progress progress) {
  auto library = load();
  if (!library) return std::unexpected(library.error());
  auto client = std::make_shared<Client>(*library, std::move(progress));
  if (!client->client) return fail("debuginfod: its client does not begin");
  Client::in_use = &client->library;
  return Debuginfod(std::move(client));
}

// The client takes a build-id of no length to be hexadecimal text.
Result<Fd> Debuginfod::debug_file(const std::string& build_id) {
  const auto* text = reinterpret_cast<const unsigned char*>(build_id.c_str());
  const int fd = client_->library.find_debuginfo(client_->client, text, 0, nullptr);
  if (fd < 0) return fail(std::strerror(-fd));
  return Fd(fd);
}

}  // namespace pkprof
