// SPDX-License-Identifier: Apache-2.0
#include "probe/core_types.h"

#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <sys/mman.h>

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

namespace pkprof {
namespace {

struct Free {
  void operator()(btf* b) const { btf__free(b); }
};
using Btf = std::unique_ptr<btf, Free>;

// Kinds that the kernel side names: others are parts of them.
bool can_be_named(const btf_type* t) {
  return btf_is_composite(t) || btf_is_any_enum(t) || btf_is_typedef(t) || btf_is_int(t);
}

using Names = std::unordered_map<std::string_view, bool>;  // and whether it was found

Names names_of(const btf* object) {
  Names names;
  for (uint32_t id = 1; id < btf__type_cnt(object); ++id) {
    const btf_type* t = btf__type_by_id(object, id);
    if (!can_be_named(t)) continue;
    const std::string_view name = btf__name_by_offset(object, t->name_off);
    if (!name.empty()) names.emplace(name.substr(0, name.find("___")), false);
  }
  return names;
}

class Excerpt {
 public:
  Excerpt() : out_(btf__new_empty()) {}

  [[nodiscard]] const btf* types() const { return failed_ ? nullptr : out_.get(); }

  // All of `from` with types at `first` and above whose name is among `names`.
  void add(const btf* from, uint32_t first, Names& names) {
    copies_.clear();  // of another BTF
    for (uint32_t id = first; id < btf__type_cnt(from); ++id) {
      const btf_type* t = btf__type_by_id(from, id);
      if (!can_be_named(t)) continue;
      const auto it = names.find(btf__name_by_offset(from, t->name_off));
      if (it == names.end()) continue;
      copy(from, id);
      it->second = true;
    }
  }

 private:
  // Its number in the excerpt; 0: void, or what stands for it.
  uint32_t copy(const btf* from, uint32_t id) {
    if (id == 0 || failed_) return 0;
    if (const auto it = copies_.find(id); it != copies_.end()) return it->second;
    const btf_type* t = btf__type_by_id(from, id);
    const int number = out_ ? btf__add_type(out_.get(), from, t) : -1;
    if (number < 0) {
      failed_ = true;
      return 0;
    }
    const auto copied = static_cast<uint32_t>(number);
    copies_[id] = copied;
    // The copy still has the numbers of `from`. It moves when others are added.
    const auto now = [&] { return const_cast<btf_type*>(btf__type_by_id(out_.get(), copied)); };
    if (btf_is_composite(t)) {
      for (uint16_t i = 0; i < btf_vlen(t); ++i) {
        const uint32_t member = copy(from, btf_members(t)[i].type);
        btf_members(now())[i].type = member;
      }
    } else if (btf_is_array(t)) {
      const uint32_t element = copy(from, btf_array(t)->type);
      const uint32_t index = copy(from, btf_array(t)->index_type);
      btf_array(now())->type = element;
      btf_array(now())->index_type = index;
    } else if (btf_is_ptr(t)) {
      now()->type = 0;
    } else if (btf_is_mod(t) || btf_is_typedef(t)) {
      const uint32_t of = copy(from, t->type);
      now()->type = of;
    }
    return copied;
  }

  Btf out_;
  bool failed_ = false;
  std::unordered_map<uint32_t, uint32_t> copies_;  // by number in what is copied from
};

}  // namespace

CoreTypes::CoreTypes() : file_(memfd_create("pkprof types", MFD_CLOEXEC)) {
  const std::string path = "/proc/self/fd/" + std::to_string(file_.get());
  if (file_.valid() && access(path.c_str(), R_OK) == 0) path_ = path;
}

bool CoreTypes::write(const btf* object, const btf* kernel) {
  if (path_.empty()) return false;
  Names names = names_of(object);
  Excerpt excerpt;
  excerpt.add(kernel, 1, names);
  std::erase_if(names, [](const auto& n) { return n.second; });
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/sys/kernel/btf", ignored)) {
    const std::string module = entry.path().filename();
    if (module == "vmlinux") continue;
    const Btf types(btf__load_module_btf(module.c_str(), const_cast<btf*>(kernel)));
    if (types) excerpt.add(types.get(), btf__type_cnt(kernel), names);
  }
  if (!excerpt.types()) return false;
  uint32_t size = 0;
  const void* bytes = btf__raw_data(excerpt.types(), &size);
  return bytes && ftruncate(file_.get(), 0) == 0 && pwrite(file_.get(), bytes, size, 0) == size;
}

}  // namespace pkprof
