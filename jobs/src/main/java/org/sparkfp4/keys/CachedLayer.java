package org.sparkfp4.keys;

import java.io.Serializable;
import java.util.Map;
import org.sparkfp4.formats.KeyPage;

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
  /** Bytes of the pages. */
  public long bytes() {
    return pages * page.bytes();
  }
}
