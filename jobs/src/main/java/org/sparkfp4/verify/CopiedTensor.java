package org.sparkfp4.verify;

import java.io.Serializable;
import org.sparkfp4.checkpoint.LocatedTensor;

/** A tensor that must have its source's bytes; name, dtype and shape are the same. */
record CopiedTensor(LocatedTensor source, LocatedTensor copy) implements Serializable {}
