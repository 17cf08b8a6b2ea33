package org.sparkfp4.progress;

/**
 * What a run goes through, in words.
 *
 * @param item one of the things that are finished one by one, such as shard; structured logs have items and items_done
 *     under this name
 * @param bytes what the bytes are of that its rate is told in, such as source; empty where there are none
 */
public record Work(String item, String bytes) {
  /** Shards that are written, by the bytes of source that they are made from. */
  public static final Work SHARDS = new Work("shard", "source");

  /** Files that are written, and parts of files, by their own bytes. */
  public static final Work FILES_WRITTEN = new Work("file", "output");

  /** Shards that are held against their source, by their own bytes. */
  public static final Work SHARDS_COMPARED = new Work("shard", "checkpoint");

  /** Layers of a cache that are held against their source, by their bytes in the cache. */
  public static final Work LAYERS_COMPARED = new Work("layer", "cache");

  /** Files that are held against their digests. */
  public static final Work FILES_READ = new Work("file", "files");

  /** Tasks of a job of which nothing else is known. */
  public static final Work TASKS = new Work("task", "");
}
