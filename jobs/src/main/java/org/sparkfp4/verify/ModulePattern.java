package org.sparkfp4.verify;

import java.util.regex.Pattern;
import java.util.regex.PatternSyntaxException;

/**
 * An entry of a list of modules, most often of those that stay in high precision.
 *
 * @param text the entry as the file has it
 * @param full what must match a module's whole name
 * @param loose whether some loaders also take a module whose name merely contains the text
 */
record ModulePattern(String text, Pattern full, boolean loose) {
  /** ModelOpt's: a name or a shell pattern; vLLM looks for the text anywhere in a name too. */
  static ModulePattern glob(String text) {
    StringBuilder regex = new StringBuilder();
    for (char c : text.toCharArray()) {
      regex.append(c == '*' ? ".*" : c == '?' ? "." : Pattern.quote(Character.toString(c)));
    }

    return new ModulePattern(text, Pattern.compile(regex.toString()), true);
  }

  /** ModelOpt's {@code quantized_layers}: a name, which stands for all below it too. */
  static ModulePattern below(String text) {
    return new ModulePattern(text, Pattern.compile(Pattern.quote(text) + "(\\..*)?"), false);
  }

  /** compressed-tensors': a name, or behind {@code re:} an expression that is matched from the name's start. */
  static ModulePattern nameOrRegex(String text) throws PatternSyntaxException {
    Pattern pattern =
        text.startsWith("re:")
            ? Pattern.compile("(?:" + text.substring(3) + ").*")
            : Pattern.compile(Pattern.quote(text));
    return new ModulePattern(text, pattern, false);
  }

  /**
   * Whether every loader leaves the module alone.
   *
   * @throws IllegalArgumentException if that takes too long to find out
   */
  boolean excludes(String module) {
    try {
      return full.matcher(new BoundedText(module)).matches();
    } catch (BoundedText.ReadTooOften | StackOverflowError e) {
      throw new IllegalArgumentException("Invalid pattern of modules \"" + text + "\" in the configuration: it takes too "
          + "long to find out whether it means " + module + ", for runtimes too; name the modules in plainer words", e);
    }
  }

  /** Whether some loader may leave the module alone. */
  boolean mayExclude(String module) {
    return excludes(module) || (loose && module.contains(text));
  }
}
