// SPDX-License-Identifier: Apache-2.0
// Profiles as files: the codec and the file, each doing its part.
#include "model/file.h"
#include "model/pprof/format.h"
#include "model/pprof/pprof.h"

namespace pkprof {

Result<> write_profile(const Profile& profile, const std::string& path) {
  const Result<std::string> bytes = encode_pprof(profile);
  if (!bytes) return std::unexpected(bytes.error().in("writing " + path));
  return write_file(path, *bytes);
}

Result<Profile> read_profile(const std::string& path) {
  const Result<std::string> bytes = read_file(path, pprof::max_file_bytes);
  if (!bytes) return std::unexpected(bytes.error());
  Result<Profile> profile = decode_pprof(std::as_bytes(std::span(*bytes)));
  if (!profile) return std::unexpected(profile.error().in("reading " + path));
  return profile;
}

}  // namespace pkprof
