package org.sparkfp4.verify;

import java.io.Serializable;
import org.sparkfp4.checkpoint.LocatedTensor;

/** A tensor that must be, in BF16, what the source stores as codes and scales; the shape is the same. */
record DequantizedTensor(SourceWeight source, LocatedTensor copy) implements Serializable {}
