package org.sparkfp4.kernels;

/**
 * A paged cache in native memory: slot s is token {@code s mod tokens} of page {@code s div tokens}.
 *
 * @param address of page 0
 * @param count pages
 * @param tokens of a page
 * @param stride bytes from a page to the next: a page's at least, more where pages share rows with other caches
 */
public record KeyPages(long address, long count, int tokens, long stride) {
  /** Refuses pages that cannot be, or that a page of so many bytes does not fit. */
  void require(long pageBytes) {
    if (count < 0 || tokens <= 0 || stride < pageBytes || count > 0 && address == 0) {
      throw new IllegalArgumentException("Invalid pages: " + count + " of " + tokens + " tokens, " + stride
          + " bytes apart, at address " + address + ", must be at least " + pageBytes + " bytes apart");
    }

    Math.multiplyExact(count, Math.max(stride, tokens));
  }

  long slots() {
    return count * tokens;
  }

  /** Bytes from the first page's first to the last page's last. */
  long bytes(long pageBytes) {
    return count == 0 ? 0 : (count - 1) * stride + pageBytes;
  }
}
