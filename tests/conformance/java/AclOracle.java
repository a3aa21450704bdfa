import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import java.io.BufferedReader;
import java.io.BufferedWriter;
import java.io.InputStreamReader;
import java.io.OutputStreamWriter;
import java.io.Writer;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.net.InetAddress;
import java.util.Collections;
import java.util.HashMap;
import java.util.Iterator;
import java.util.Map;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.acl.AccessControlEntry;
import org.apache.kafka.common.acl.AccessControlEntryFilter;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.internals.PluginMetricsImpl;
import org.apache.kafka.common.network.ClientInformation;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.requests.RequestContext;
import org.apache.kafka.common.requests.RequestHeader;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourcePatternFilter;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.metadata.authorizer.StandardAcl;
import org.apache.kafka.metadata.authorizer.StandardAuthorizer;
import org.apache.kafka.security.authorizer.AclEntry;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.authorizer.AuthorizationResult;

/**
 * Answers questions about access control with Apache Kafka's own code. Each line of standard input
 * is a question, a JSON array. For each question the program writes one line to standard output, a
 * JSON array of answers.
 *
 * A rule is [resource type, name, pattern type, principal, host, operation, permission], a filter
 * too; types, operations and permissions are Kafka's numbers.
 *
 * ["authorize", super users, allow everyone, [rule...], [[principal type, principal name, host,
 * operation, resource type, name]...]] gives 1 if authorize() allows, plus 2 if
 * authorizeByResourceType() allows;
 * ["filter", [filter...], [rule...]] gives for each filter and each rule whether they match;
 * ["refuse", [rule...]] gives for each rule why it is refused, or null;
 * ["host", [address...]] gives each address in the form with which rules are compared;
 * ["supported", [resource type...]] gives the bit field of the supported operations.
 *
 * The code is plain Java, so that Janino, the compiler among Spark's jars, can compile it.
 */
public class AclOracle {
    private static final ObjectMapper JSON = new ObjectMapper();
    private final StandardAuthorizer authorizer = new StandardAuthorizer();

    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        Writer out = new BufferedWriter(new OutputStreamWriter(System.out, "UTF-8"));
        AclOracle oracle = new AclOracle();
        String line;
        while ((line = in.readLine()) != null) {
            ArrayNode answers = JSON.createArrayNode();
            oracle.answer(JSON.readTree(line), answers);
            out.write(JSON.writeValueAsString(answers));
            out.write("\n");
        }
        out.flush();
    }

    private AclOracle() throws Exception {
        authorizer.withPluginMetrics(new PluginMetricsImpl(new Metrics(), new HashMap()));
        authorizer.completeInitialLoad();
    }

    private void answer(JsonNode asked, ArrayNode answers) throws Exception {
        String kind = text(asked, 0);
        if (kind.equals("authorize")) {
            load(asked);
            Iterator each = at(asked, 4).iterator();
            while (each.hasNext()) {
                answers.add(authorized((JsonNode) each.next()));
            }
        } else if (kind.equals("filter")) {
            filter(at(asked, 1), at(asked, 2), answers);
        } else if (kind.equals("refuse")) {
            Iterator each = at(asked, 1).iterator();
            while (each.hasNext()) {
                answers.add(refusal((JsonNode) each.next()));
            }
        } else if (kind.equals("host")) {
            Iterator each = at(asked, 1).iterator();
            while (each.hasNext()) {
                String address = ((JsonNode) each.next()).asText();
                answers.add(InetAddress.getByName(address).getHostAddress());
            }
        } else {
            Iterator each = at(asked, 1).iterator();
            while (each.hasNext()) {
                answers.add(supported(((JsonNode) each.next()).asInt()));
            }
        }
    }

    private void load(JsonNode asked) {
        Map settings = new HashMap();
        settings.put("super.users", text(asked, 1));
        settings.put("allow.everyone.if.no.acl.found", text(asked, 2));
        authorizer.configure(settings);
        Map acls = new HashMap();
        Iterator each = at(asked, 3).iterator();
        while (each.hasNext()) {
            JsonNode rule = (JsonNode) each.next();
            acls.put(Uuid.randomUuid(), new StandardAcl(
                type(rule, 0), text(rule, 1), pattern(rule), text(rule, 3), text(rule, 4),
                operation(rule, 5), permission(rule)));
        }
        authorizer.loadSnapshot(acls);
    }

    private int authorized(JsonNode question) throws Exception {
        RequestContext context = new RequestContext(
            (RequestHeader) null, "", InetAddress.getByName(text(question, 2)),
            new KafkaPrincipal(text(question, 0), text(question, 1)),
            new ListenerName("SSL"), SecurityProtocol.SSL, ClientInformation.EMPTY, false);
        AclOperation operation = operation(question, 3);
        ResourceType type = type(question, 4);
        ResourcePattern resource = new ResourcePattern(type, text(question, 5), PatternType.LITERAL);
        Action action = new Action(operation, resource, 1, false, false);
        Object one = authorizer.authorize(context, Collections.singletonList(action)).get(0);
        Object any = authorizer.authorizeByResourceType(context, operation, type);
        return (one == AuthorizationResult.ALLOWED ? 1 : 0)
            + (any == AuthorizationResult.ALLOWED ? 2 : 0);
    }

    private static void filter(JsonNode filters, JsonNode rules, ArrayNode answers) {
        Iterator each = filters.iterator();
        while (each.hasNext()) {
            JsonNode filter = (JsonNode) each.next();
            AclBindingFilter made = new AclBindingFilter(
                new ResourcePatternFilter(type(filter, 0), nullable(filter, 1), pattern(filter)),
                new AccessControlEntryFilter(
                    nullable(filter, 3), nullable(filter, 4), operation(filter, 5),
                    permission(filter)));
            Iterator rule = rules.iterator();
            while (rule.hasNext()) {
                answers.add(made.matches(binding((JsonNode) rule.next())));
            }
        }
    }

    /** What AclApis.handleCreateAcls checks, and then the controller. */
    private static String refusal(JsonNode rule) throws Exception {
        AclBinding binding;
        try {
            binding = binding(rule);
        } catch (IllegalArgumentException refused) {
            return refused.getMessage();
        }
        String name = binding.pattern().name();
        if (binding.pattern().resourceType() == ResourceType.CLUSTER
                && !name.equals("kafka-cluster")) {
            return "the name of the cluster";
        }
        Method validate = Class.forName("org.apache.kafka.controller.AclControlManager")
            .getDeclaredMethod("validateNewAcl", new Class[] {AclBinding.class, boolean.class});
        validate.setAccessible(true);
        try {
            validate.invoke(null, new Object[] {binding, Boolean.TRUE});
        } catch (InvocationTargetException refused) {
            return refused.getCause().getMessage();
        }
        return null;
    }

    private static int supported(int type) {
        int field = 0;
        Iterator each = AclEntry.supportedOperations(ResourceType.fromCode((byte) type)).iterator();
        while (each.hasNext()) {
            field |= 1 << ((AclOperation) each.next()).code();
        }
        return field;
    }

    private static AclBinding binding(JsonNode rule) {
        return new AclBinding(
            new ResourcePattern(type(rule, 0), text(rule, 1), pattern(rule)),
            new AccessControlEntry(
                text(rule, 3), text(rule, 4), operation(rule, 5), permission(rule)));
    }

    private static ResourceType type(JsonNode rule, int at) {
        return ResourceType.fromCode((byte) at(rule, at).asInt());
    }

    private static PatternType pattern(JsonNode rule) {
        return PatternType.fromCode((byte) at(rule, 2).asInt());
    }

    private static AclOperation operation(JsonNode rule, int at) {
        return AclOperation.fromCode((byte) at(rule, at).asInt());
    }

    private static AclPermissionType permission(JsonNode rule) {
        return AclPermissionType.fromCode((byte) at(rule, 6).asInt());
    }

    private static String nullable(JsonNode rule, int at) {
        return at(rule, at).isNull() ? null : text(rule, at);
    }

    private static String text(JsonNode asked, int at) {
        return at(asked, at).asText();
    }

    /**
     * Without the cast, Janino would use the method `get` of JsonNode's interface TreeNode, whose
     * result has no method `asText`.
     */
    private static JsonNode at(JsonNode asked, int at) {
        return (JsonNode) asked.get(at);
    }
}
