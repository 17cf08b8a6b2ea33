package org.sparkfp4.functions;

import java.util.function.Function;
import org.apache.spark.sql.api.java.UDF2;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.sparkfp4.formats.E4M3;
import org.sparkfp4.formats.E8M0;
import org.sparkfp4.formats.ElementType;

/** The values of a tensor, {@code (payload, dtype)}, each widened exactly; null gives null. */
public final class TensorValues implements UDF2<byte[], String, float[]> {
  /** array of float. */
  public static final DataType RETURN_TYPE = DataTypes.createArrayType(DataTypes.FloatType, false);

  @Override
  public float[] call(byte[] payload, String dtype) {
    return payload == null ? null : decoder(dtype).apply(payload);
  }

  /** What decodes payloads of a type; one that has no values is refused. */
  static Function<byte[], float[]> decoder(String dtype) {
    return switch (Payload.required(dtype, "dtype")) {
      case "F8_E4M3" -> payload -> decoded(payload, E4M3::decode);
      case "F8_E8M0" -> payload -> decoded(payload, E8M0::decode);
      case "BF16", "F16", "F32" -> payload -> elements(payload, ElementType.of(dtype));
      default -> throw new IllegalArgumentException(
          "Invalid dtype: " + dtype + ", must be BF16, F16, F32, F8_E4M3 or F8_E8M0");
    };
  }

  private static float[] elements(byte[] payload, ElementType type) {
    Payload.rows(payload, type.bytes(), "payload");
    return type.floats(payload);
  }

  private static float[] decoded(byte[] payload, Code code) {
    float[] values = new float[payload.length];
    for (int i = 0; i < values.length; i++) {
      values[i] = code.value(payload[i]);
    }

    return values;
  }

  private interface Code {
    float value(int code);
  }
}
