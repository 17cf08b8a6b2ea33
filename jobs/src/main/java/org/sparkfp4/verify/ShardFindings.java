package org.sparkfp4.verify;

import java.io.Serializable;
import java.util.List;

/**
 * What a task found in its shard.
 *
 * @param bytes bytes of the shard
 * @param layers what its layers are like, those with unusable bytes apart
 * @param counts codes and scales of these layers
 * @param differences what is wrong
 */
record ShardFindings(long bytes, List<LayerCheck> layers, CodeCounts counts, Differences differences)
    implements Serializable {
  ShardFindings {
    layers = List.copyOf(layers);
  }
}
