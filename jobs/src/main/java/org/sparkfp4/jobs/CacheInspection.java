package org.sparkfp4.jobs;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.SerializationFeature;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.io.PrintWriter;
import java.util.List;
import java.util.TreeMap;
import org.sparkfp4.files.Printable;
import org.sparkfp4.keys.CachedLayer;
import org.sparkfp4.plan.ByteSize;

/** What {@code inspect} tells of a cache of keys. */
record CacheInspection(String path, List<CachedLayer> layers) {
  private static final ObjectMapper JSON = new ObjectMapper().enable(SerializationFeature.INDENT_OUTPUT);

  void print(PrintWriter out) {
    CachedLayer first = layers.get(0);
    out.printf("%s%n", path);
    out.printf("cache of      indexer keys, MXFP4%n");
    out.printf("model         %s%n", text(first, "model"));
    out.printf("scale rule    %s%n", text(first, "scale_rule"));
    out.printf("norm          %s, eps %s%n", text(first, "norm"), text(first, "ln_eps"));
    out.printf("rounded       %s%n", text(first, "ln_round_bf16").equals("true") ? "to bf16" : "no");
    out.printf("hadamard      %s%n%n", text(first, "hadamard"));
    TextTable table = new TextTable("layer", "keys", "pages", "page tokens", "head size", "bytes");
    for (CachedLayer layer : layers) {
      table.add(layer.name(), text(layer, "num_tokens"), Long.toString(layer.pages()),
          Integer.toString(layer.page().tokens()), Integer.toString(layer.page().dim()),
          ByteSize.format(layer.bytes()));
    }

    table.print(out);
  }

  private static String text(CachedLayer layer, String key) {
    String value = layer.metadata().getOrDefault(key, "");
    return value.isEmpty() ? "none" : Printable.of(value);
  }

  String json() throws IOException {
    ObjectNode all = JSON.createObjectNode().put("path", path);
    ArrayNode list = all.putArray("layers");
    for (CachedLayer layer : layers) {
      ObjectNode node = list.addObject().put("layer", layer.name()).put("file", layer.file())
          .put("pages", layer.pages()).put("bytes", layer.bytes());
      node.set("metadata", JSON.valueToTree(new TreeMap<>(layer.metadata())));
    }

    return JSON.writeValueAsString(all);
  }
}
