package org.sparkfp4.sink;

import java.nio.ByteBuffer;

/**
 * A slab as the function returned it, on its way into a shard.
 *
 * @param unit number of its unit
 * @param index number of the slab in the unit
 * @param packed E2M1 codes of its members, one behind the other
 * @param scales E4M3 block scales, likewise
 * @param amax the unit's amax
 * @param sumSquares sum of squared weights, one a member
 * @param squaredError sum of squared errors, one a member
 * @param globalScale the unit's global scale as the layout stores it
 * @param requantized blocks that an exact cast had no scale for, one a member
 * @param gptqRows rows whose codes are GPTQ's, one a member
 * @param checksums CRC-32C of the payloads data0 to data2 and scale0 to scale2; null where the query leaves them out
 */
record EncodedSlab(
    int unit,
    int index,
    ByteBuffer packed,
    ByteBuffer scales,
    float amax,
    double[] sumSquares,
    double[] squaredError,
    float globalScale,
    long[] requantized,
    long[] gptqRows,
    int[] checksums) {}
