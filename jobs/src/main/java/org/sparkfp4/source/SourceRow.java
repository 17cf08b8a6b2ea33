package org.sparkfp4.source;

import java.io.Serializable;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;

/**
 * A row of the source before its bytes are read.
 *
 * @param values a value a column of the unpruned schema: Integer, Long, Float, String, null, or a {@link ByteRange} for
 *     a payload
 */
record SourceRow(List<Object> values) implements Serializable {
  static SourceRow of(Object... values) {
    return new SourceRow(Collections.unmodifiableList(Arrays.asList(values)));
  }
}
