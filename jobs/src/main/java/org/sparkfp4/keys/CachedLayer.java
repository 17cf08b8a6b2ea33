package org.sparkfp4.keys;

import java.io.Serializable;
import java.util.Map;
import org.sparkfp4.formats.KeyPage;
import org.sparkfp4.formats.ScaleRule;

/**
 * The keys of one layer in a cache.
 *
 * @param name the layer's
 * @param file path of its file
 * @param sha256 what the cache's index says of the file; empty where there is no index
 * @param dataStart first byte of the file's tensors
 * @param offset first byte of its pages
 * @param pages how many
 * @param page their geometry
 * @param metadata of the file
 */
public record CachedLayer(String name, String file, String sha256, long dataStart, long offset, long pages,
    KeyPage page, Map<String, String> metadata) implements Serializable {
  /**
   * Keys that the file says it has.
   *
   * @throws InvalidKeysException if it says none, or more than its pages hold
   */
  public long tokens() {
    String text = metadata.get(CacheMetadata.TOKENS);
    try {
      long tokens = Long.parseLong(text);
      if (tokens >= 0 && tokens <= pages * page.tokens()) {
        return tokens;
      }
    } catch (NumberFormatException e) {
      // refused below, as one that is out of range is
    }

    throw invalid(CacheMetadata.TOKENS, "an integer from 0 to " + pages * page.tokens() + ", which its pages hold");
  }

  /**
   * How the file says it was made.
   *
   * @throws InvalidKeysException if it says what cannot be
   */
  KeyOptions options() {
    return new KeyOptions(page.tokens(), pages, eps(), flag("ln_round_bf16"), flag("hadamard"), rule(),
        metadata.getOrDefault("model", ""));
  }

  private Float eps() {
    String text = metadata.getOrDefault(CacheMetadata.EPS, "");
    if (text.isEmpty()) {
      return null;
    }

    try {
      float eps = Float.parseFloat(text);
      if (eps > 0 && Float.isFinite(eps)) {
        return eps;
      }
    } catch (NumberFormatException e) {
      // refused below, as one that is out of range is
    }

    throw invalid(CacheMetadata.EPS, "a positive, finite number, or empty");
  }

  private boolean flag(String name) {
    String text = metadata.getOrDefault(name, "false");
    if (!text.equals("true") && !text.equals("false")) {
      throw invalid(name, "true or false");
    }

    return text.equals("true");
  }

  private ScaleRule rule() {
    String text = metadata.getOrDefault("scale_rule", ScaleRule.CEIL.text());
    try {
      return ScaleRule.of(text);
    } catch (IllegalArgumentException e) {
      throw invalid("scale_rule", "a rule of quantize-keys --scale-rule");
    }
  }

  private InvalidKeysException invalid(String entry, String expected) {
    String text = metadata.get(entry);
    return new InvalidKeysException("Invalid cache file " + file + ": its " + entry + " is "
        + (text == null ? "not there" : '"' + text + '"') + ", must be " + expected + "; make the cache again");
  }

  /** Bytes of the pages. */
  public long bytes() {
    return pages * page.bytes();
  }
}
