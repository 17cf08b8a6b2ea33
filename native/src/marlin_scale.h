// The bytes that vLLM's Marlin takes for E4M3 scales, and back; for the host, and for tables of a device.
#pragma once

#include <cstdint>
#include <cstring>

namespace sparkfp4 {

// E4M3 bytes to and from those of org.sparkfp4.formats.MarlinScale. With B the byte of 2^-6, a normal scale is its own
// code and B - 8, and the seven subnormal ones are spread below.
class MarlinScale {
 public:
  // exponent: of the factor, 0 to 17.
  explicit MarlinScale(int exponent)
      : base_((15 + exponent) * 8),
        // The code of 448 / factor; among the subnormal scales a factor of 2 halves the code.
        limit_(exponent <= 14 ? 0x7e - 8 * exponent : 7 >> (exponent - 15)) {
    std::memset(encoded_, kNone, sizeof encoded_);
    std::memset(decoded_, kLost, sizeof decoded_);
    for (int code = 0; code <= limit_; code++) {
      int of_code = code >= 8   ? code + base_
                    : code >= 4 ? base_ + 2 * (code - 4)
                    : code >= 2 ? base_ - 8 + 4 * (code - 2)
                    : code == 1 ? base_ - 16
                                : 0;
      encoded_[code] = static_cast<unsigned char>(of_code);
      decoded_[of_code] = static_cast<unsigned char>(code);
    }

    std::memset(near_base_, kLost, sizeof near_base_);
    for (int i = 0; i < 32 && base_ - 16 + i < 256; i++) {
      near_base_[i] = decoded_[base_ - 16 + i];
    }
  }

  // What a scale becomes that the factor has no place for, and what such a byte becomes again.
  static constexpr unsigned char kNone = 0xff;
  static constexpr unsigned char kLost = 0x7f;

  const unsigned char (&encoded() const)[256] { return encoded_; }
  const unsigned char (&decoded() const)[256] { return decoded_; }

  // For those who reckon in place of looking up: from code 8 to the limit a byte is the code and the base, modulo 256;
  // bytes from 16 below the base to 15 above it have a table of their own.
  int base() const { return base_; }
  int limit() const { return limit_; }
  const unsigned char (&near_base() const)[32] { return near_base_; }

 private:
  int base_;
  int limit_;
  unsigned char encoded_[256];
  unsigned char decoded_[256];
  unsigned char near_base_[32];
};

}  // namespace sparkfp4
