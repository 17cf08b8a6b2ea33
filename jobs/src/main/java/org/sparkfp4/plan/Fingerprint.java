package org.sparkfp4.plan;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.sparkfp4.checkpoint.LocatedTensor;
import org.sparkfp4.checkpoint.ModelFamily;

/** Tells plans apart whose outputs may differ in a byte. */
final class Fingerprint {
  /** Goes up whenever the same source and options give other bytes than before. */
  static final int BYTE_FORMAT = 1;

  private static final ObjectMapper JSON = new ObjectMapper();

  private Fingerprint() {}

  /** SHA-256, in hex, over everything that the output's bytes depend on. */
  static String of(PlanSource source, ModelFamily family, PlanOptions options) {
    ObjectNode all = JSON.createObjectNode();
    all.put("byteFormat", BYTE_FORMAT);
    all.set("options", JSON.valueToTree(options));
    all.put("family", family.name());
    all.put("familyFile", family.digest());
    all.put("config", hex(sha256().digest(bytes(source.config().toString()))));
    return of(all, source.files(), source.tensors());
  }

  /** The same of activations, {@code amax} being that of modules whose tensors do not have the say. */
  static String of(
      List<SourceFile> sources, List<LocatedTensor> tensors, PlanOptions options, Map<String, Float> amax) {
    ObjectNode all = JSON.createObjectNode();
    all.put("byteFormat", BYTE_FORMAT);
    all.set("options", JSON.valueToTree(options));
    all.set("amax", JSON.valueToTree(new TreeMap<>(amax)));
    return of(all, sources, tensors);
  }

  private static String of(ObjectNode all, List<SourceFile> sources, List<LocatedTensor> tensors) {
    ArrayNode files = all.putArray("files");
    Map<String, MessageDigest> headers = headers(tensors);
    for (SourceFile file : sources) {
      ObjectNode entry = files.addObject();
      entry.put("name", file.name()).put("length", file.length()).put("modified", file.modified());
      MessageDigest header = headers.get(file.name());
      entry.put("tensors", header == null ? "" : hex(header.digest()));
    }

    return hex(sha256().digest(bytes(all.toString())));
  }

  /** That of the same plan whose errors are weighed by these statistics. */
  static String weighed(String fingerprint, PlannedImportance importance) {
    ObjectNode all = JSON.createObjectNode();
    all.put("plan", fingerprint);
    all.set("files", JSON.valueToTree(importance.files()));
    all.set("tensors", JSON.valueToTree(new TreeMap<>(importance.tensors())));
    return hex(sha256().digest(bytes(all.toString())));
  }

  /** A digest of each file's list of tensors. */
  private static Map<String, MessageDigest> headers(List<LocatedTensor> tensors) {
    Map<String, MessageDigest> headers = new TreeMap<>();
    for (LocatedTensor tensor : tensors) {
      MessageDigest header = headers.computeIfAbsent(tensor.file(), file -> sha256());
      // the name's length before it: no name can then read as another name and shape
      header.update(bytes(tensor.name().length() + " " + tensor.name() + " " + tensor.dtype() + " " + tensor.shape()
          + " " + tensor.offset() + " " + tensor.length() + "\n"));
    }

    return headers;
  }

  private static byte[] bytes(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }

  private static String hex(byte[] digest) {
    return HexFormat.of().formatHex(digest);
  }

  private static MessageDigest sha256() {
    try {
      return MessageDigest.getInstance("SHA-256");
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException("Cannot find SHA-256, which every JDK has", e);
    }
  }
}
