package org.sparkfp4.safetensors;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonFactoryBuilder;
import com.fasterxml.jackson.databind.json.JsonMapper;

/**
 * JSON in files, which is UTF-8. Jackson would take some first bytes for those of UTF-16 or UTF-32, and refuse what
 * follows as a failure of the file system and not as one of the text.
 */
public final class Utf8Json {
  private Utf8Json() {}

  public static JsonFactoryBuilder factory() {
    return new JsonFactoryBuilder().disable(JsonFactory.Feature.CHARSET_DETECTION);
  }

  public static JsonMapper.Builder mapper() {
    return JsonMapper.builder(factory().build());
  }
}
