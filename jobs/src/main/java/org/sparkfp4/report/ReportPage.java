package org.sparkfp4.report;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** The report as one page that needs nothing but itself: style, scripts, plotting library and figures are in it. */
final class ReportPage {
  private static final ObjectMapper JSON = new ObjectMapper();

  /** Where the template wants the title, the data or a resource. */
  private static final Pattern PLACE = Pattern.compile("\\{\\{([a-z.]+)}}");

  private ReportPage() {}

  static String html(RunReport report) {
    ObjectNode data = report.pageData();
    // in one pass: what is put in may hold what looks like a place
    return PLACE.matcher(resource("report.html")).replaceAll(place -> Matcher.quoteReplacement(
        switch (place.group(1)) {
          case "title" -> title(data);
          case "data" -> json(data);
          default -> resource(place.group(1));
        }));
  }

  private static String title(ObjectNode data) {
    String folder = data.path("output").asText();
    return "Spark FP4 " + data.path("command").asText() + ": "
        + escaped(folder.substring(folder.lastIndexOf('/') + 1));
  }

  private static String escaped(String text) {
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("\"", "&quot;");
  }

  /** JSON that ends no script element, whatever names a checkpoint has. */
  private static String json(ObjectNode data) {
    try {
      return JSON.writeValueAsString(data).replace("<", "\\u003c");
    } catch (JsonProcessingException e) {
      throw new IllegalStateException("Cannot write a report's figures", e);
    }
  }

  private static String resource(String name) {
    try (InputStream in = ReportPage.class.getResourceAsStream(name)) {
      return new String(in.readAllBytes(), StandardCharsets.UTF_8);
    } catch (IOException e) {
      throw new UncheckedIOException("Cannot read " + name + " of this jar", e);
    }
  }
}
