package org.sparkfp4.files;

import com.fasterxml.jackson.core.JsonParseException;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.Reader;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;

/**
 * JSON in files, which is UTF-8. Jackson, given bytes, takes some for UTF-16 or UTF-32, and what does not go with that
 * is then a failure of the file system and not one of the text.
 */
public final class Utf8Json {
  private Utf8Json() {}

  /** The characters of a file; {@link JsonParseException} where it is no UTF-8. */
  public static Reader reader(InputStream in) {
    return new InputStreamReader(in, StandardCharsets.UTF_8.newDecoder()) {
      @Override
      public int read(char[] into, int from, int length) throws IOException {
        try {
          return super.read(into, from, length);
        } catch (CharacterCodingException e) {
          throw new JsonParseException(null, "it is no UTF-8", e);
        }
      }
    };
  }
}
