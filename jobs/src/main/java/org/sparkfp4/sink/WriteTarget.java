package org.sparkfp4.sink;

import java.io.Serializable;
import java.util.List;
import org.apache.spark.util.LongAccumulator;
import org.sparkfp4.checkpoint.SourceFile;
import org.sparkfp4.kernels.KernelChoice;
import org.sparkfp4.output.TaskOutput;

/**
 * What every task of a write must know, whatever its shard.
 *
 * @param input the source checkpoint's folder
 * @param sources its files, as planned
 * @param slabBytes source bytes above which a unit comes in several slabs
 * @param gptq whether rows are GPTQ's
 * @param kernels that a tensor is dequantized with, which has no row in the query
 * @param fingerprint the plan's
 * @param output where shards are written
 * @param layout what the shards' metadata calls their layout; null where tensors' names tell it
 * @param underWay takes bytes of the source as they are gone through
 */
record WriteTarget(
    String input,
    List<SourceFile> sources,
    long slabBytes,
    boolean gptq,
    KernelChoice kernels,
    String fingerprint,
    TaskOutput output,
    String layout,
    LongAccumulator underWay)
    implements Serializable {}
