import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.BufferedWriter;
import java.io.InputStreamReader;
import java.io.OutputStreamWriter;
import java.io.Writer;
import java.util.Iterator;
import org.apache.avro.Schema;
import org.apache.avro.SchemaCompatibility;

/**
 * Answers questions with Apache Avro's own code. Each line of standard input is a question, a JSON
 * array. For each question the program writes one line with a JSON object to standard output.
 *
 * ["parse", schema, referenced schema...] gives {"text"} (the schema's toString) or {"refused"};
 * ["compare", reader, writer] gives {"found": [{"kind", "path", "detail", "reader"}...]} or
 * {"refused"}. The code is plain Java, so that Janino, the compiler among Spark's jars, can compile
 * it.
 */
public class AvroOracle {
    private static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        Writer out = new BufferedWriter(new OutputStreamWriter(System.out, "UTF-8"));
        String line;
        while ((line = in.readLine()) != null) {
            ObjectNode answer = JSON.createObjectNode();
            try {
                answer(JSON.readTree(line), answer);
            } catch (Exception refused) {
                answer.put("refused", refused.getClass().getSimpleName() + ": " + refused.getMessage());
            } catch (StackOverflowError refused) {
                answer.put("refused", "StackOverflowError");
            }
            out.write(JSON.writeValueAsString(answer));
            out.write("\n");
        }
        out.flush();
    }

    private static void answer(JsonNode asked, ObjectNode answer) throws Exception {
        if (text(asked, 0).equals("parse")) {
            Schema.Parser parser = new Schema.Parser();
            for (int at = 2; at < asked.size(); at++) {
                parser.parse(text(asked, at));
            }
            answer.put("text", parser.parse(text(asked, 1)).toString());
        } else {
            Schema reader = new Schema.Parser().parse(text(asked, 1));
            Schema writer = new Schema.Parser().parse(text(asked, 2));
            compare(reader, writer, answer.putArray("found"));
        }
    }

    /**
     * Without the cast, Janino would use the method `get` of JsonNode's interface TreeNode, whose
     * result has no method `asText`.
     */
    private static String text(JsonNode asked, int at) {
        return ((JsonNode) asked.get(at)).asText();
    }

    private static void compare(Schema reader, Schema writer, ArrayNode found) {
        Iterator each = SchemaCompatibility.checkReaderWriterCompatibility(reader, writer)
            .getResult().getIncompatibilities().iterator();
        while (each.hasNext()) {
            SchemaCompatibility.Incompatibility one = (SchemaCompatibility.Incompatibility) each.next();
            ObjectNode made = found.addObject();
            made.put("kind", one.getType().toString());
            made.put("path", one.getLocation());
            made.put("detail", one.getMessage());
            made.put("reader", one.getReaderFragment().toString());
        }
    }
}
