package org.sparkfp4.keys;

import java.io.Serializable;
import java.util.Map;
import org.sparkfp4.formats.KeyPage;

/**
 * The keys of one layer in a cache.
 *
 * @param name the layer's
 * @param file path of its file
 * @param offset first byte of its pages there
 * @param pages how many
 * @param page their geometry
 * @param metadata of the file
 */
public record CachedLayer(String name, String file, long offset, long pages, KeyPage page,
    Map<String, String> metadata) implements Serializable {
  /** Bytes of the pages. */
  public long bytes() {
    return pages * page.bytes();
  }
}
