package org.sparkfp4.calibration;

import java.io.Serializable;
import org.sparkfp4.checkpoint.LocatedTensor;

/**
 * Which experts the tokens of an input go to.
 *
 * @param file its file, a qualified path
 * @param tensor I32 or I64, {@code [tokens, top_k]}
 */
record RoutingTensor(String file, LocatedTensor tensor) implements Serializable {}
