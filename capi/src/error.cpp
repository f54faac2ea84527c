// SPDX-License-Identifier: Apache-2.0
#include "error.hpp"

#include <cstring>
#include <string_view>

#include "growpage/version.hpp"
#include "structs.hpp"

namespace growpage::capi {

namespace {

// Fixed arrays: remembering an error must work without memory, and needs no destructor at thread
// exit.
struct LastError {
  growpage_status status = GROWPAGE_OK;
  char argument[128] = "";
  char value[128] = "";
  char allowed[256] = "";
  char message[512] = "";
};

thread_local LastError last_error;

template <std::size_t size>
void copy(char (&to)[size], std::string_view text) noexcept {
  const std::size_t count = text.size() < size ? text.size() : size - 1;
  if (count > 0) std::memcpy(to, text.data(), count);  // an empty view may be null
  to[count] = '\0';
}

void remember(const Status& status) noexcept {
  LastError& e = last_error;
  e.status = static_cast<growpage_status>(status.code());
  copy(e.message, status_name(status.code()));
  const ErrorDetail* detail = status.detail();
  copy(e.argument, detail != nullptr ? detail->argument : std::string_view());
  copy(e.value, detail != nullptr ? detail->value : std::string_view());
  copy(e.allowed, detail != nullptr ? detail->allowed : std::string_view());
  if (detail == nullptr) return;
  try {
    copy(e.message, status.message());
  } catch (...) {  // no memory for the text: the status's name stays
  }
}

}  // namespace

growpage_status fail(const Status& status, const Hooks* hooks) noexcept {
  remember(status);
  if (hooks != nullptr && !status.retryable()) {
    const bool memory = status == StatusCode::out_of_memory;
    hooks->log(memory ? GROWPAGE_LOG_ERROR : GROWPAGE_LOG_WARNING, last_error.message);
  }
  return static_cast<growpage_status>(status.code());
}

}  // namespace growpage::capi

extern "C" {

const char* growpage_version(void) {
#define GROWPAGE_TEXT(x) #x
#define GROWPAGE_VERSION_TEXT(major, minor, patch) \
  GROWPAGE_TEXT(major) "." GROWPAGE_TEXT(minor) "." GROWPAGE_TEXT(patch)
  return GROWPAGE_VERSION_TEXT(GROWPAGE_VERSION_MAJOR, GROWPAGE_VERSION_MINOR,
                               GROWPAGE_VERSION_PATCH);
#undef GROWPAGE_VERSION_TEXT
#undef GROWPAGE_TEXT
}

int32_t growpage_api_revision(void) { return GROWPAGE_API_REVISION; }

const char* growpage_status_text(growpage_status status) {
  return growpage::status_name(static_cast<growpage::StatusCode>(status));
}

void growpage_last_error(growpage_error* error, size_t struct_size) {
  const growpage::capi::LastError& e = growpage::capi::last_error;
  const growpage_error full = {sizeof full, e.status, 0, e.argument, e.value, e.allowed, e.message};
  (void)growpage::capi::write_sized(error, struct_size, full);
}
}
