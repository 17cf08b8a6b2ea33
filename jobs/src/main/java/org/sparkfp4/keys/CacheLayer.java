package org.sparkfp4.keys;

import java.io.Serializable;
import java.util.List;

/**
 * A layer of the output, in a file of its own.
 *
 * @param name the layer's name
 * @param file the file's
 * @param tensors numbers of its tensors, in the order of their bytes
 * @param cached tokens that have a slot in the key cache
 * @param isInOrder whether token t is in slot t; of a table, whether slots have no gap
 */
record CacheLayer(String name, String file, List<Integer> tensors, long cached, boolean isInOrder)
    implements Serializable {}
